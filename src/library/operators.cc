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
#include "library/matmul.h"
#include "library/parallel.h"
#include "library/plan_cache.h"

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
  return key;
}

std::shared_ptr<const MatmulEntry> FindMatmul(const ffi::String& text, const MatmulTypes& types) {
  static auto* cache = new PlanCache<MatmulEntry>();
  const int threads = PoolThreads();
  return cache->Get(Key(text, {types.a, types.b, types.out}, threads), [&] {
    auto entry = std::make_shared<MatmulEntry>();
    entry->attrs = MatmulAttrs::Parse(text);
    entry->types = types;
    entry->plan = MakeMatmulPlan(entry->attrs, types, threads, threading);
    if (const WeightFormat* format = entry->plan->weight_format()) entry->fingerprint = format->Fingerprint();
    return entry;
  });
}

std::shared_ptr<const Conv2dEntry> FindConv2d(const ffi::String& text, const Conv2dTypes& types) {
  static auto* cache = new PlanCache<Conv2dEntry>();
  const int threads = PoolThreads();
  return cache->Get(Key(text, {types.x, types.w, types.out}, threads), [&] {
    auto entry = std::make_shared<Conv2dEntry>();
    entry->attrs = Conv2dAttrs::Parse(text);
    entry->types = types;
    entry->plan = MakeConv2dPlan(entry->attrs, types, threads);
    if (const WeightFormat* format = entry->plan->weight_format()) entry->fingerprint = format->Fingerprint();
    return entry;
  });
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

void Matmul(ffi::PackedArgs args, ffi::Any*) {
  constexpr const char* kOp = "matmul";
  const ffi::String text = AttrsText(args, kOp);
  const auto* a = args[0].cast<DLTensor*>();
  const auto* b = args[1].cast<DLTensor*>();
  const auto* y = args[args.size() - 1].cast<DLTensor*>();
  const DType a_type = DTypeOf(a->dtype, kOp, "1");
  std::shared_ptr<const MatmulEntry> entry =
      FindMatmul(text, {a_type, SecondType(b, a_type, kOp), DTypeOf(y->dtype, kOp, "out")});
  const MatmulAttrs& attrs = entry->attrs;
  const Arguments in = ReadArguments(args, attrs.epilogue, kOp, kDLCPU);
  CheckElements(in.first, Extent(attrs.a, attrs.batch, attrs.m, attrs.k), false, kOp, "1");
  const int64_t out_elements = Extent(attrs.out, attrs.batch, attrs.m, attrs.n);
  CheckElements(in.out, out_elements, false, kOp, "out");
  if (in.bias) CheckElements(in.bias, attrs.n, true, kOp, "bias");
  if (in.residual) CheckElements(in.residual, out_elements, false, kOp, "residual");
  const int64_t b_elements = attrs.packed ? 0 : Extent(attrs.b, attrs.batch, attrs.k, attrs.n);
  const ResolvedWeight weight = Second(*entry, in.second, b_elements, false, kOp);
  entry->plan->Run({Data(in.first), weight.body, in.bias ? Data(in.bias) : nullptr,
                    in.residual ? Data(in.residual) : nullptr, const_cast<char*>(Data(in.out))});
}

void Conv2d(ffi::PackedArgs args, ffi::Any*) {
  constexpr const char* kOp = "conv2d";
  const ffi::String text = AttrsText(args, kOp);
  const auto* x = args[0].cast<DLTensor*>();
  const auto* w = args[1].cast<DLTensor*>();
  const auto* y = args[args.size() - 1].cast<DLTensor*>();
  const DType x_type = DTypeOf(x->dtype, kOp, "1");
  std::shared_ptr<const Conv2dEntry> entry =
      FindConv2d(text, {x_type, SecondType(w, x_type, kOp), DTypeOf(y->dtype, kOp, "out")});
  const Conv2dAttrs& attrs = entry->attrs;
  const Arguments in = ReadArguments(args, attrs.epilogue, kOp, kDLCPU);
  const int64_t out_elements = attrs.n * attrs.o * attrs.oh * attrs.ow;
  CheckElements(in.first, attrs.n * attrs.c * attrs.h * attrs.w, true, kOp, "1");
  CheckElements(in.out, out_elements, true, kOp, "out");
  if (in.bias) CheckElements(in.bias, attrs.o, true, kOp, "bias");
  if (in.residual) CheckElements(in.residual, out_elements, true, kOp, "residual");
  const ResolvedWeight weight = Second(*entry, in.second, attrs.o * attrs.i * attrs.kh * attrs.kw, true, kOp);
  entry->plan->Run({Data(in.first), weight.body, in.bias ? Data(in.bias) : nullptr,
                    in.residual ? Data(in.residual) : nullptr, const_cast<char*>(Data(in.out))});
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
    return PackWeight(Data(w), *entry->plan->weight_format());
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
  std::vector<char> gathered(plain.bytes);
  CopyLayout(Data(w) + s.b.offset * static_cast<int64_t>(SizeOf(type)), view, gathered.data(), plain, SizeOf(type));
  return PackWeight(gathered.data(), *entry->plan->weight_format());
}

ffi::Map<ffi::String, ffi::Any> Info() {
  ffi::Map<ffi::String, ffi::Any> info;
  const dnn::Api* api = dnn::Get();
  info.Set("name", ffi::String(api ? "oneDNN" : "none"));
  info.Set("version", ffi::String(api ? api->version_text : ""));
  info.Set("path", ffi::String(api ? api->path : ""));
  info.Set("isa", ffi::String(api ? api->isa : ""));
  info.Set("threads", static_cast<int64_t>(PoolThreads()));
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
  if (IsConv2d(text)) return FindConv2d(text, {type, type, type})->plan->Describe();
  return FindMatmul(text, {type, type, type})->plan->Describe();
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
      .def_packed("uir.library.cpu.conv2d", Conv2d)
      .def("uir.library.cpu.pack_weight", [](DLTensor* w, ffi::String attrs) { return PackFor(w, attrs); })
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
