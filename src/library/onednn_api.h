// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace uir::library {

//! The part of oneDNN's public C interface (version 3) that we call, bound when
//! the program runs: the library is a package of its own without headers, and
//! everything must also work where it is missing.
namespace dnn {

using EngineHandle = struct EngineTag*;
using StreamHandle = struct StreamTag*;
using MdHandle = struct MdTag*;
using MemoryHandle = struct MemoryTag*;
using PdHandle = struct PdTag*;
using PrimitiveHandle = struct PrimitiveTag*;
using AttrHandle = struct AttrTag*;
using PostOpsHandle = struct PostOpsTag*;

constexpr int kMaxDims = 12;
using Dims = int64_t[kMaxDims];

struct ExecArg {
  int id;
  MemoryHandle memory;
};

struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

enum DataType : int { kF16 = 1, kBF16 = 2, kF32 = 3 };
enum Runtime : unsigned { kRuntimeSequential = 1, kRuntimeOpenMP = 2 };
enum Query : int {
  kQueryImplementation = 8,
  kQueryStrides = 14,
  kQuerySource = 129,
  kQueryWeights = 131,
  kQueryDestination = 133,
  kQueryScratchpad = 136,
  kQueryNdims = 256,
  kQueryDims = 257,
  kQueryPaddedDims = 260,
  kQueryFormatKind = 262,
  kQueryInnerBlockCount = 263,
  kQueryInnerBlocks = 264,
  kQueryInnerIndices = 265,
};
enum Argument : int {
  kSource = 1,
  kBinarySource = 2,
  kDestination = 17,
  kWeights = 33,
  kBias = 41,
  kScratchpad = 80,
  kPostOp = 32768,  // times (index of the post-op + 1), or-ed with the operand
};
enum Algorithm : int {
  kNoAlgorithm = 0,
  kConvolutionDirect = 1,
  kRelu = 32,
  kTanh = 33,
  kLinear = 38,
  kHardSigmoid = 40,
  kSigmoid = 41,
  kGeluTanh = 43,
  kSilu = 44,
  kClip = 46,
  kGeluErf = 49,
  kHardSwish = 52,
  kBinaryAdd = 0x1fff0,
};
constexpr int kCpu = 1, kInOrder = 1, kTagAny = 1, kFormatBlocked = 2, kForwardInference = 96, kScratchpadUser = 1;

// name in the library without its prefix, signature
#define UIR_ONEDNN_FUNCTIONS(F)                                                                                    \
  F(version, const Version*())                                                                                     \
  F(get_effective_cpu_isa, int())                                                                                  \
  F(engine_create, int(EngineHandle*, int, size_t))                                                                \
  F(stream_create, int(StreamHandle*, EngineHandle, unsigned))                                                     \
  F(stream_destroy, int(StreamHandle))                                                                             \
  F(memory_desc_create_with_strides, int(MdHandle*, int, const int64_t*, int, const int64_t*))                     \
  F(memory_desc_create_with_tag, int(MdHandle*, int, const int64_t*, int, int))                                    \
  F(memory_desc_query, int(const MdTag*, int, void*))                                                              \
  F(memory_desc_equal, int(const MdTag*, const MdTag*))                                                            \
  F(memory_desc_get_size, size_t(const MdTag*))                                                                    \
  F(memory_desc_clone, int(MdHandle*, const MdTag*))                                                               \
  F(memory_desc_destroy, int(MdHandle))                                                                            \
  F(memory_create, int(MemoryHandle*, const MdTag*, EngineHandle, void*))                                          \
  F(memory_set_data_handle, int(MemoryHandle, void*))                                                              \
  F(memory_destroy, int(MemoryHandle))                                                                             \
  F(post_ops_create, int(PostOpsHandle*))                                                                          \
  F(post_ops_append_eltwise, int(PostOpsHandle, int, float, float))                                                \
  F(post_ops_append_binary, int(PostOpsHandle, int, const MdTag*))                                                 \
  F(post_ops_destroy, int(PostOpsHandle))                                                                          \
  F(primitive_attr_create, int(AttrHandle*))                                                                       \
  F(primitive_attr_set_post_ops, int(AttrHandle, const PostOpsTag*))                                               \
  F(primitive_attr_set_scratchpad_mode, int(AttrHandle, int))                                                      \
  F(primitive_attr_destroy, int(AttrHandle))                                                                       \
  F(matmul_primitive_desc_create,                                                                                  \
    int(PdHandle*, EngineHandle, const MdTag*, const MdTag*, const MdTag*, const MdTag*, const AttrTag*))          \
  F(convolution_forward_primitive_desc_create,                                                                     \
    int(PdHandle*, EngineHandle, int, int, const MdTag*, const MdTag*, const MdTag*, const MdTag*, const int64_t*, \
        const int64_t*, const int64_t*, const int64_t*, const AttrTag*))                                           \
  F(reorder_primitive_desc_create,                                                                                 \
    int(PdHandle*, const MdTag*, EngineHandle, const MdTag*, EngineHandle, const AttrTag*))                        \
  F(primitive_desc_query, int(const PdTag*, int, int, void*))                                                      \
  F(primitive_desc_query_md, const MdTag*(const PdTag*, int, int))                                                 \
  F(primitive_desc_destroy, int(PdHandle))                                                                         \
  F(primitive_create, int(PrimitiveHandle*, const PdTag*))                                                         \
  F(primitive_execute, int(const PrimitiveTag*, StreamHandle, int, const ExecArg*))                                \
  F(primitive_destroy, int(PrimitiveHandle))

/*! The functions of one loaded library and its CPU engine. */
struct Api {
#define UIR_ONEDNN_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  UIR_ONEDNN_FUNCTIONS(UIR_ONEDNN_MEMBER)
#undef UIR_ONEDNN_MEMBER
  /*! OpenMP's own controls; null where the library runs sequentially. */
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;

  EngineHandle engine = nullptr;
  std::string path, version_text, isa;
};

/*! The library, loaded once; null where there is none (then `LoadError` says
 * why). */
const Api* Get();

/*! The library where it was ever loaded, also after `SetEnabled(false)`: for
 * what was made before. */
const Api& Loaded();

/*! Why `Get` is null; empty where it is not. */
std::string LoadError();

/*! Where to look first; must come before the first `Get`, else it returns
 * false. */
bool SetPath(const std::string& path);

/*! Leave the library unused (or use it again): results must not depend on it,
 * and the tests show that they do not. */
void SetEnabled(bool enabled);

/*! Throw InternalError naming the call unless `status` is success. */
void Check(int status, const char* call);

/*! While it lives, the library runs on the calling thread alone; the thread's
 * OpenMP setting is restored after. */
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_ = 0;
};

struct MdDelete {
  void operator()(MdTag* md) const { Loaded().memory_desc_destroy(md); }
};
using OwnedMd = std::unique_ptr<MdTag, MdDelete>;

OwnedMd StridedMd(int ndims, const int64_t* dims, DataType type, const int64_t* strides);
OwnedMd AnyMd(int ndims, const int64_t* dims, DataType type);

}  // namespace dnn
}  // namespace uir::library
