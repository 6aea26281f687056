// SPDX-License-Identifier: Apache-2.0
// The global function uir.runtime.calls_by_shapes: of several functions the one for the shapes of a call's arguments.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace uir::runtime {
namespace {

namespace ffi = tvm::ffi;

/*! What a number has in a key where a tensor has its rank. */
constexpr int64_t kNumber = -1;

/*! For each argument its rank and sizes, or kNumber and the number. */
using Key = std::vector<int64_t>;

struct HashKey {
  size_t operator()(const Key& key) const {
    uint64_t hash = key.size();
    for (int64_t each : key) hash = (hash ^ static_cast<uint64_t>(each)) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(hash ^ (hash >> 32));
  }
};

/*! A function, and which arguments it takes. */
struct Entry {
  ffi::Function function;
  std::vector<int> places;
  /*! How often it was called, and when last: nanoseconds since 1970. Python reads it. */
  ffi::Tensor uses;
};

/*! The key of a call; false where an argument is no tensor and no number. */
bool ReadKey(ffi::PackedArgs args, Key* key) {
  key->clear();
  for (int i = 0; i < args.size(); ++i) {
    if (args[i].type_index() == ffi::TypeIndex::kTVMFFIInt) {
      key->insert(key->end(), {kNumber, args[i].cast<int64_t>()});
      continue;
    }
    const std::optional<DLTensor*> tensor = args[i].try_cast<DLTensor*>();
    if (!tensor) return false;
    key->push_back((*tensor)->ndim);
    key->insert(key->end(), (*tensor)->shape, (*tensor)->shape + (*tensor)->ndim);
  }
  return true;
}

void Count(const Entry& entry) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto* numbers = static_cast<int64_t*>(entry.uses.data_ptr());
  __atomic_fetch_add(numbers, 1, __ATOMIC_RELAXED);
  __atomic_store_n(numbers + 1, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(), __ATOMIC_RELAXED);
}

/*! It does not change once it is made: many threads may call at once. */
class CallsByShapes {
 public:
  void Add(const ffi::Shape& key, Entry entry) {
    entries_.insert_or_assign(Key(key.begin(), key.end()), std::move(entry));
  }

  /*! The result of the function for these arguments; None where there is none, or where that one says so. */
  void Call(ffi::PackedArgs args, ffi::Any* result) const {
    thread_local Key key;
    if (!ReadKey(args, &key)) return;
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    const Entry& entry = found->second;
    std::vector<ffi::AnyView> taken;
    taken.reserve(entry.places.size());
    for (int place : entry.places) taken.push_back(args[place]);
    entry.function.CallPacked(taken.data(), static_cast<int32_t>(taken.size()), result);
    if (result->type_index() != ffi::TypeIndex::kTVMFFINone) Count(entry);
  }

 private:
  std::unordered_map<Key, Entry, HashKey> entries_;
};

/*! Refuses what is not two numbers of 64 bits that can be counted in. */
void CheckUses(const ffi::Tensor& uses) {
  const DLDataType dtype = uses.dtype();
  const bool is_int64 = dtype.code == kDLInt && dtype.bits == 64 && dtype.lanes == 1;
  if (uses.device().device_type != kDLCPU || !is_int64 || uses.numel() != 2 || !uses.IsContiguous()) {
    TVM_FFI_THROW(ValueError) << "uir.runtime.calls_by_shapes cannot count in this tensor."
                              << "\n  need:   int64[2] in the host's memory";
  }
}

/*! Of how many arguments a key is. */
int64_t CountArguments(const ffi::Shape& key) {
  int64_t count = 0;
  const int64_t end = static_cast<int64_t>(key.size());
  for (int64_t at = 0; at < end; ++count) {
    if (key[at] < kNumber) TVM_FFI_THROW(ValueError) << "uir.runtime.calls_by_shapes got a rank of " << key[at] << ".";
    at += key[at] == kNumber ? 2 : 1 + key[at];
    if (at > end) TVM_FFI_THROW(ValueError) << "uir.runtime.calls_by_shapes got a key without its end.";
  }
  return count;
}

/*! (keys, functions, which arguments each takes, int64[2] each counts in) -> function of the arguments */
ffi::Function Make(const ffi::Array<ffi::Shape>& keys, const ffi::Array<ffi::Function>& functions,
                   const ffi::Array<ffi::Shape>& places, const ffi::Array<ffi::Tensor>& uses) {
  if (functions.size() != keys.size() || places.size() != keys.size() || uses.size() != keys.size()) {
    TVM_FFI_THROW(ValueError) << "uir.runtime.calls_by_shapes got lists of different lengths.";
  }
  CallsByShapes calls;
  for (size_t i = 0; i < keys.size(); ++i) {
    CheckUses(uses[i]);
    std::vector<int> those(places[i].begin(), places[i].end());
    const int64_t arguments = CountArguments(keys[i]);
    for (int place : those) {
      if (place >= 0 && place < arguments) continue;
      TVM_FFI_THROW(ValueError) << "uir.runtime.calls_by_shapes got argument " << place << " of " << arguments << ".";
    }
    calls.Add(keys[i], {functions[i], std::move(those), uses[i]});
  }
  return ffi::Function::FromPacked(
      [calls = std::move(calls)](ffi::PackedArgs args, ffi::Any* result) { calls.Call(args, result); });
}

TVM_FFI_STATIC_INIT_BLOCK() { ffi::reflection::GlobalDef().def("uir.runtime.calls_by_shapes", &Make); }

}  // namespace
}  // namespace uir::runtime
