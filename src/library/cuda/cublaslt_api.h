// SPDX-License-Identifier: Apache-2.0
// The part of cuBLASLt's C interface that is used, bound when it is first needed.
// Prototypes, enumerators and structures: cublasLt.h and cublas_api.h of CUDA 12 and 13 (the same in both).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/vendor_library.h"

namespace uir::library::cuda::lt {

using Handle = struct HandleTag*;
using MatmulDesc = struct MatmulDescTag*;
using Layout = struct LayoutTag*;
using Preference = struct PreferenceTag*;

struct Algo {
  uint64_t data[8];
};
struct HeuristicResult {
  Algo algo;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

// cudaDataType_t
enum DataType : int32_t { kF32 = 0, kF64 = 1, kF16 = 2, kI8 = 3, kI32 = 10, kBF16 = 14 };
// cublasComputeType_t
enum ComputeType : int32_t { kCompute32F = 68, kCompute32I = 72, kCompute32FFastTF32 = 77 };
// cublasOperation_t
enum Operation : int32_t { kN = 0, kT = 1 };
// cublasLtMatmulDescAttributes_t
enum DescAttribute : int { kTransA = 3, kTransB = 4, kEpilogue = 7, kBiasPointer = 8 };
// cublasLtEpilogue_t; values are added
enum Epilogue : uint32_t { kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32 };
// cublasLtMatrixLayoutAttribute_t
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
// cublasLtMatmulPreferenceAttributes_t
enum PreferenceAttribute : int { kMaxWorkspaceBytes = 1, kMinAlignmentA = 5 /* then B, C, D */ };

#define UIR_CUBLASLT_FUNCTIONS(F)                                                                                    \
  F(Create, int(Handle*))                                                                                            \
  F(GetVersion, size_t())                                                                                            \
  F(GetStatusString, const char*(int))                                                                               \
  F(MatmulDescCreate, int(MatmulDesc*, ComputeType, DataType))                                                       \
  F(MatmulDescDestroy, int(MatmulDesc))                                                                              \
  F(MatmulDescSetAttribute, int(MatmulDesc, DescAttribute, const void*, size_t))                                     \
  F(MatrixLayoutCreate, int(Layout*, DataType, uint64_t, uint64_t, int64_t))                                         \
  F(MatrixLayoutDestroy, int(Layout))                                                                                \
  F(MatrixLayoutSetAttribute, int(Layout, LayoutAttribute, const void*, size_t))                                     \
  F(MatmulPreferenceCreate, int(Preference*))                                                                        \
  F(MatmulPreferenceDestroy, int(Preference))                                                                        \
  F(MatmulPreferenceSetAttribute, int(Preference, PreferenceAttribute, const void*, size_t))                         \
  F(MatmulAlgoGetHeuristic,                                                                                          \
    int(Handle, MatmulDesc, Layout, Layout, Layout, Layout, Preference, int, HeuristicResult*, int*))                \
  F(Matmul, int(Handle, MatmulDesc, const void*, const void*, Layout, const void*, Layout, const void*, const void*, \
                Layout, void*, Layout, const Algo*, void*, size_t, void*))

struct Api {
#define UIR_CUBLASLT_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  UIR_CUBLASLT_FUNCTIONS(UIR_CUBLASLT_MEMBER)
#undef UIR_CUBLASLT_MEMBER

  /*! Throw LibraryError naming the call unless `status` is success. */
  void Check(int status, const char* call, const std::string& problem = "") const;
};

VendorLibrary& Shared();

/*! All functions; throws LibraryError where the library is missing. */
const Api& Get();

/*! The library's handle of the current device, made at its first use and kept. */
Handle HandleOf(int device_id);

/*! What the library chooses for a problem: an algorithm, and the bytes of workspace that it needs. */
struct Choice {
  Algo algo{};
  size_t workspace_bytes = 0;
};

//! The choice for D = A * B (+ C, which lies as D does), of pointers that are multiples of `alignment` bytes.
//! `problem` says in errors what it is. Throws LibraryError where the library has no algorithm.
Choice Choose(Handle handle, MatmulDesc desc, Layout a, Layout b, Layout d, int64_t alignment,
              const std::string& problem);

}  // namespace uir::library::cuda::lt
