// SPDX-License-Identifier: Apache-2.0
// The packed functions uir.library.cpu.*: check the operands, find the plan,
// run it.

#include <tvm/ffi/container/map.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "library/arguments.h"
#include "library/conv2d.h"
#include "library/conv2d_tile_kernels.h"
#include "library/kernel.h"
#include "library/matmul.h"
#include "library/parallel.h"
#include "library/plan_cache.h"
#include "library/recurrence.h"

namespace uir::library {
namespace {

namespace ffi = tvm::ffi;

std::atomic<Threading> threading{Threading::kPool};

template <typename Attrs, typename Types, typename Plan>
struct Entry {
  Attrs attrs;
  Types types;
  std::unique_ptr<Plan> plan;
  std::pair<uint64_t, uint64_t> fingerprint{0, 0};
};
using MatmulEntry = Entry<MatmulAttrs, MatmulTypes, MatmulPlan>;
using Conv2dEntry = Entry<Conv2dAttrs, Conv2dTypes, Conv2dPlan>;

/*! What a plan depends on besides the attributes. */
std::string Key(const ffi::String& text, std::array<DType, 3> types, int threads) {
  std::string key(text.data(), text.size());
  key += '|';
  for (DType type : types) key += static_cast<char>('0' + static_cast<int>(type));
  key += dnn::Get() ? 'L' : '-';
  key += threading == Threading::kPool ? 'P' : 'O';
  key += std::to_string(threads);
  if (const TileKernels* tiles = TileKernelsHere()) key += tiles->name;
  return key;
}

/*! The plan of an operator for its attributes, made by `make` at the first call. */
template <typename EntryType, typename Make>
std::shared_ptr<const EntryType> Find(const ffi::String& text, decltype(EntryType::types) types,
                                      std::array<DType, 3> type_list, Make make) {
  static auto* cache = new PlanCache<EntryType>();
  const int threads = PoolThreads();
  return cache->Get(Key(text, type_list, threads), [&] {
    auto entry = std::make_shared<EntryType>();
    entry->attrs = decltype(EntryType::attrs)::Parse(text);
    entry->types = types;
    if (entry->attrs.empty()) return entry;  // nothing to plan
    entry->plan = make(entry->attrs, types, entry->attrs.execution.Threads(threads));
    if (const WeightFormat* format = entry->plan->weight_format()) entry->fingerprint = format->Fingerprint();
    return entry;
  });
}

/*! Of a result with elements. */
template <typename EntryType>
const auto& PlanOf(const EntryType& entry, const char* op) {
  if (!entry.plan) {
    TVM_FFI_THROW(ValueError) << op
                              << ": the result has no elements, so that there is no plan for it.\n  need:   a "
                                 "size of at least 1 in every dimension";
  }
  return *entry.plan;
}

std::shared_ptr<const MatmulEntry> FindMatmul(const ffi::String& text, const MatmulTypes& types) {
  auto make = [](const MatmulAttrs& attrs, const MatmulTypes& given, int threads) {
    return MakeMatmulPlan(attrs, given, threads, threading);
  };
  return Find<MatmulEntry>(text, types, {types.a, types.b, types.out}, make);
}

std::shared_ptr<const Conv2dEntry> FindConv2d(const ffi::String& text, const Conv2dTypes& types) {
  return Find<Conv2dEntry>(text, types, {types.x, types.w, types.out}, MakeConv2dPlan);
}

/*! Type of the second operand; a packed weight is bytes and has the type of the
 * first. */
DType SecondType(const DLTensor* second, DType first, const char* op) {
  if (second->dtype.code == kDLUInt && second->dtype.bits == 8) return first;
  return DTypeOf(second->dtype, op, "2");
}

template <typename EntryType>
ResolvedWeight Second(const EntryType& entry, const DLTensor* second, int64_t elements, bool exact, const char* op) {
  const bool bytes = second->dtype.code == kDLUInt;
  if (entry.attrs.packed != bytes) {
    TVM_FFI_THROW(ValueError) << "Library operator " << op << ": operand 2 is " << (bytes ? "" : "not ")
                              << "a packed weight, its attributes say otherwise.\n  remedy: set "
                                 "\"packed\" accordingly.";
  }
  if (entry.attrs.packed) return ResolveWeight(second, *entry.plan->weight_format(), entry.fingerprint);
  CheckElements(second, elements, exact, op, "2");
  return {Data(second), nullptr};
}

/*! Elements of the second operand, and whether it may have no more. */
std::pair<int64_t, bool> SecondOf(const MatmulAttrs& s) {
  return {s.packed ? 0 : Extent(s.b, s.batch, s.k, s.n), false};
}
std::pair<int64_t, bool> SecondOf(const Conv2dAttrs& s) { return {s.o * s.i * s.kh * s.kw, true}; }

template <typename Pointers, typename EntryType, typename Types>
void Run(const ffi::PackedArgs& args, const char* op,
         std::shared_ptr<const EntryType> (*find)(const ffi::String&, const Types&)) {
  const ffi::String text = AttrsText(args, op);
  const DType type = DTypeOf(args[0].cast<DLTensor*>()->dtype, op, "1");
  const DType second = SecondType(args[1].cast<DLTensor*>(), type, op);
  const DType out = DTypeOf(args[args.size() - 1].cast<DLTensor*>()->dtype, op, "out");
  const std::shared_ptr<const EntryType> entry = find(text, {type, second, out});
  const Arguments in = ReadArguments(args, entry->attrs.epilogue, op, kDLCPU);
  CheckAround(in, entry->attrs, op);
  if (entry->attrs.empty()) return;
  const auto [elements, exact] = SecondOf(entry->attrs);
  const ResolvedWeight weight = Second(*entry, in.second, elements, exact, op);
  entry->plan->Run(PointersOf<Pointers>(in, weight.body));
}

/*! What a plan was made under: tests, and pools of other sizes, change it. */
struct Circumstances {
  bool has_library = dnn::Get() != nullptr;
  Threading pool = threading;
  int threads = PoolThreads();
  const TileKernels* tiles = TileKernelsHere();

  bool operator==(const Circumstances& other) const {
    return has_library == other.has_library && pool == other.pool && threads == other.threads && tiles == other.tiles;
  }
};

//! A function of the tensors alone for calls with these operands, whose second one has its data if that never changes:
//! attributes, plan and weight are found, and types and sizes checked, once. None where the weight is to be found at
//! every call.
template <typename Pointers, typename EntryType, typename Types>
ffi::Any Prepared(const ffi::PackedArgs& args, const char* op,
                  std::shared_ptr<const EntryType> (*find)(const ffi::String&, const Types&)) {
  const ffi::String text = AttrsText(args, op);
  const DLTensor* second = args[1].cast<DLTensor*>();
  const DType type = DTypeOf(args[0].cast<DLTensor*>()->dtype, op, "1");
  const Types types = {type, SecondType(second, type, op),
                       DTypeOf(args[args.size() - 1].cast<DLTensor*>()->dtype, op, "out")};
  const Circumstances now;
  const std::shared_ptr<const EntryType> entry = find(text, types);
  const Arguments in = ReadArguments(args, entry->attrs.epilogue, op, kDLCPU);
  CheckAround(in, entry->attrs, op);
  if (entry->attrs.empty()) return ffi::Function::FromPacked([](ffi::PackedArgs, ffi::Any*) {});
  const bool is_packed = entry->attrs.packed;
  if (is_packed && !second->data) return nullptr;
  const auto [elements, exact] = SecondOf(entry->attrs);
  const ResolvedWeight weight = Second(*entry, in.second, elements, exact, op);
  const bool bias = in.bias != nullptr, residual = in.residual != nullptr;
  return ffi::Function::FromPacked([=](ffi::PackedArgs given, ffi::Any*) {
    int at = 0;
    Arguments tensors;
    tensors.first = given[at++].cast<DLTensor*>();
    tensors.second = given[at++].cast<DLTensor*>();
    if (bias) tensors.bias = given[at++].cast<DLTensor*>();
    if (residual) tensors.residual = given[at++].cast<DLTensor*>();
    tensors.out = given[at].cast<DLTensor*>();
    const char* body = is_packed ? weight.body : Data(tensors.second);
    if (Circumstances() == now) {
      entry->plan->Run(PointersOf<Pointers>(tensors, body));
      return;
    }
    const std::shared_ptr<const EntryType> other = find(text, types);
    const ResolvedWeight again = Second(*other, tensors.second, elements, exact, op);
    other->plan->Run(PointersOf<Pointers>(tensors, again.body));
  });
}

void Matmul(ffi::PackedArgs args, ffi::Any*) { Run<MatmulData>(args, "matmul", FindMatmul); }
void PreparedMatmul(ffi::PackedArgs args, ffi::Any* made) { *made = Prepared<MatmulData>(args, "matmul", FindMatmul); }

void Conv2d(ffi::PackedArgs args, ffi::Any*) { Run<Conv2dData>(args, "conv2d", FindConv2d); }
void PreparedConv2d(ffi::PackedArgs args, ffi::Any* made) { *made = Prepared<Conv2dData>(args, "conv2d", FindConv2d); }

/*! The attributes of a recurrence by their text, parsed once. */
std::shared_ptr<const RecurrenceAttrs> FindRecurrence(const ffi::String& text) {
  static auto* cache = new PlanCache<RecurrenceAttrs>();
  return cache->Get(text, [&] { return std::make_shared<RecurrenceAttrs>(RecurrenceAttrs::Parse(text)); });
}

/*! (inputs, weight, state, [cell or bias], attributes, rows, [last cell]), see RecurrenceData. */
void Recurrence(ffi::PackedArgs args, ffi::Any*) {
  constexpr const char* kOp = "recurrence";
  int at = 0;
  while (at < args.size() && !args[at].as<ffi::String>()) ++at;
  if (at < 3 || at >= args.size()) {
    TVM_FFI_THROW(ValueError) << "Library operator recurrence got " << args.size() << " arguments.\n  need:   inputs, "
                              << "weight, state, cell or bias, attributes, rows, cell";
  }
  const std::shared_ptr<const RecurrenceAttrs> attrs = FindRecurrence(args[at].cast<ffi::String>());
  const bool lstm = attrs->cell == Cell::kLstm, gru = attrs->cell == Cell::kGru;
  if (at != 3 + (lstm || gru) || args.size() != at + 2 + lstm) {
    TVM_FFI_THROW(ValueError) << "Library operator recurrence got " << args.size()
                              << " arguments.\n  need:   " << 5 + 2 * lstm + gru << " for its cell";
  }
  const int64_t state = Count({attrs->batch, attrs->hidden});
  auto floats = [&](int place, const char* operand, int64_t elements) {
    const DLTensor* tensor = args[place].cast<DLTensor*>();
    CheckTensor(tensor, kOp, operand, kDLCPU);
    CheckType(DTypeOf(tensor->dtype, kOp, operand), DType::kF32, kOp, operand);
    CheckElements(tensor, elements, true, kOp, operand);
    return reinterpret_cast<float*>(const_cast<char*>(Data(tensor)));
  };
  RecurrenceData data;
  data.inputs = floats(0, "1", Count({attrs->steps, state, attrs->gates()}));
  data.state = floats(2, "3", state);
  if (lstm) data.cell = floats(3, "4", state);
  if (gru) data.bias = floats(3, "4", attrs->hidden);
  data.rows = floats(at + 1, "out", Count({attrs->steps, state}));
  if (lstm) data.last_cell = floats(at + 2, "cell", state);
  AlignedBuffer packed;
  if (attrs->packed) {
    data.panels = floats(1, "2", PackedElements(*attrs));
  } else {
    const DLTensor* weight = args[1].cast<DLTensor*>();
    CheckElements(weight, Extent(attrs->weight, {}, attrs->hidden, attrs->gates() * attrs->hidden), false, kOp, "2");
    packed = AlignedBuffer(PackedElements(*attrs) * sizeof(float));
    PackPanels(*attrs, floats(1, "2", Elements(weight)), reinterpret_cast<float*>(packed.data()));
    data.panels = reinterpret_cast<float*>(packed.data());
  }
  RunRecurrence(*attrs, data, PoolThreads());
}

/*! The weight of a recurrence as `Recurrence` takes it with "packed": true, into `out`, which has its elements. */
void PackRecurrence(const DLTensor* weight, const ffi::String& text, DLTensor* out) {
  constexpr const char* kOp = "pack_recurrence";
  const std::shared_ptr<const RecurrenceAttrs> attrs = FindRecurrence(text);
  for (const DLTensor* tensor : {weight, const_cast<const DLTensor*>(out)}) {
    CheckTensor(tensor, kOp, "weight", kDLCPU);
    CheckType(DTypeOf(tensor->dtype, kOp, "weight"), DType::kF32, kOp, "weight");
  }
  CheckElements(weight, Extent(attrs->weight, {}, attrs->hidden, attrs->gates() * attrs->hidden), false, kOp, "weight");
  CheckElements(out, PackedElements(*attrs), true, kOp, "out");
  PackPanels(*attrs, reinterpret_cast<const float*>(Data(weight)),
             reinterpret_cast<float*>(const_cast<char*>(Data(out))));
}

/*! Which operator the attributes belong to: only a convolution has an "input".
 */
bool IsConv2d(const std::string& text) { return text.find("\"input\"") != std::string::npos; }

ffi::Tensor PackFor(const DLTensor* w, const ffi::String& text) {
  constexpr const char* kOp = "pack_weight";
  CheckTensor(w, kOp, "weight", kDLCPU);
  const DType type = DTypeOf(w->dtype, kOp, "weight");
  auto must_be_packed = [](bool packed) {
    if (!packed)
      TVM_FFI_THROW(ValueError) << "pack_weight: the attributes say \"packed\": false.\n  remedy: "
                                   "set it to true.";
  };
  if (IsConv2d(text)) {
    auto entry = FindConv2d(text, {type, type, type});
    must_be_packed(entry->attrs.packed);
    const Conv2dAttrs& s = entry->attrs;
    CheckElements(w, s.o * s.i * s.kh * s.kw, true, kOp, "weight");
    return PackWeight(Data(w), *PlanOf(*entry, kOp).weight_format());
  }
  auto entry = FindMatmul(text, {type, type, type});
  const MatmulAttrs& s = entry->attrs;
  must_be_packed(s.packed);
  for (size_t d = 0; d < s.batch.size(); ++d) {
    if (s.batch[d] > 1 && s.b.strides[d] != 0) {
      TVM_FFI_THROW(ValueError) << "pack_weight: b has a batch dimension of " << s.batch[d]
                                << ".\n  limit:  a packed weight is one matrix\n  remedy: pass it "
                                   "unpacked.";
    }
  }
  CheckElements(w, Extent(s.b, s.batch, s.k, s.n), false, kOp, "weight");
  BlockedLayout plain = BlockedLayout::Contiguous({s.k, s.n}, SizeOf(type)), view = plain;
  view.strides[0] = s.b.strides[s.batch.size()];
  view.strides[1] = s.b.strides[s.batch.size() + 1];
  const WeightFormat& format = *PlanOf(*entry, kOp).weight_format();
  const char* first = Data(w) + s.b.offset * static_cast<int64_t>(SizeOf(type));
  if (view.strides[0] == plain.strides[0] && view.strides[1] == 1) return PackWeight(first, format);
  std::vector<char> gathered(plain.bytes);
  CopyLayout(first, view, gathered.data(), plain, SizeOf(type));
  return PackWeight(gathered.data(), format);
}

ffi::Map<ffi::String, ffi::Any> Info() {
  ffi::Map<ffi::String, ffi::Any> info;
  const dnn::Api* api = dnn::Get();
  info.Set("name", ffi::String(api ? "oneDNN" : "none"));
  info.Set("version", ffi::String(api ? api->version_text : ""));
  info.Set("path", ffi::String(api ? api->path : ""));
  info.Set("isa", ffi::String(api ? api->isa : ""));
  info.Set("threads", static_cast<int64_t>(PoolThreads()));
  info.Set("converted_bytes", ConvertedBytes());
  info.Set("error", ffi::String(dnn::LoadError()));
  return info;
}

void SetThreading(const ffi::String& name) {
  if (name != "pool" && name != "openmp") {
    TVM_FFI_THROW(ValueError) << "Unknown threading \"" << std::string(name) << "\".\n  limit:  pool, openmp";
  }
  threading = name == "pool" ? Threading::kPool : Threading::kOpenMP;
}

DType DTypeOfName(const std::string& name) {
  if (name == "float16") return DType::kF16;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float64") return DType::kF64;
  return DType::kF32;
}

ffi::String Describe(const ffi::String& text, const ffi::String& dtype) {
  const DType type = DTypeOfName(dtype);
  if (IsConv2d(text)) return PlanOf(*FindConv2d(text, {type, type, type}), "describe").Describe();
  return PlanOf(*FindMatmul(text, {type, type, type}), "describe").Describe();
}

ffi::Tensor UnpackBytes(const DLTensor* blob) {
  struct Allocator {
    void AllocData(DLTensor* tensor) { tensor->data = new char[std::max<int64_t>(1, tensor->shape[0])]; }
    void FreeData(DLTensor* tensor) { delete[] static_cast<char*>(tensor->data); }
  };
  std::vector<char> plain;
  WeightFormat format;
  UnpackWeight(blob, &plain, &format);
  const int64_t size = static_cast<int64_t>(plain.size());
  ffi::Tensor out =
      ffi::Tensor::FromNDAlloc(Allocator(), ffi::ShapeView(&size, 1), DLDataType{kDLUInt, 8, 1}, DLDevice{kDLCPU, 0});
  std::copy(plain.begin(), plain.end(), static_cast<char*>(out.data_ptr()));
  return out;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.library.cpu.matmul", Matmul)
      .def_packed("uir.library.cpu.matmul.prepared", PreparedMatmul)
      .def_packed("uir.library.cpu.conv2d", Conv2d)
      .def_packed("uir.library.cpu.conv2d.prepared", PreparedConv2d)
      .def_packed("uir.library.cpu.recurrence", Recurrence)
      .def("uir.library.cpu.pack_weight", [](DLTensor* w, ffi::String attrs) { return PackFor(w, attrs); })
      .def("uir.library.cpu.pack_recurrence",
           [](DLTensor* weight, ffi::String attrs, DLTensor* out) { PackRecurrence(weight, attrs, out); })
      .def("uir.library.cpu.recurrence_elements",
           [](ffi::String attrs) { return PackedElements(*FindRecurrence(attrs)); })
      .def("uir.library.cpu.unpack_weight", [](DLTensor* blob) { return UnpackBytes(blob); })
      .def("uir.library.cpu.describe_weight", [](DLTensor* blob) { return ffi::String(DescribeBlob(blob)); })
      .def("uir.library.cpu.describe", Describe)
      .def("uir.library.cpu.info", Info)
      .def("uir.library.cpu.set_path", [](ffi::String path) { return dnn::SetPath(path); })
      .def("uir.library.cpu.set_enabled", [](bool enabled) { dnn::SetEnabled(enabled); })
      .def("uir.library.cpu.set_threading", SetThreading);
}

}  // namespace
}  // namespace uir::library
