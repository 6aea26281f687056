// SPDX-License-Identifier: Apache-2.0
// The nodes of the iGraph: iPointer, iSlice, iOp, loop tree, hardware model, graph.
//
// They hold data only.  What an iOp means, which shapes and dtypes it takes, is a table in
// uir_tvm.igraph.iops; rules over whole graphs are the verifier's.
#pragma once

#include <tvm/ffi/any.h>

#include "igraph/affine.h"
#include "igraph/space.h"

namespace uir {

/*! \brief A contiguous piece of memory on one level. */
class IPointerNode : public ffi::Object {
 public:
  ffi::String name;
  /*! \brief "reg", "sram" or "dram". */
  ffi::String level;
  /*! \brief "fp32", "int64", "bool", ... */
  ffi::String dtype;
  /*! \brief Number of elements; where sizes of the graph decide it, the greatest. */
  int64_t size = 0;
  /*! \brief Of a dram pointer: "in", "out", "inout"; "tmp" for everything the kernel owns itself. */
  ffi::String role;
  //! \brief Of a dram pointer whose number of elements depends on the graph's sizes: its dimensions, row-major, each an
  //! expression of sizes; else empty.
  ffi::Array<Affine> dims;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.IPointer", IPointerNode, ffi::Object);
};

class IPointer : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IPointer, ffi::ObjectRef, IPointerNode);
};

/*! \brief What a slice has for a stride that sizes decide: no distance of elements that anything can have. */
constexpr int64_t kOpenStride = (int64_t{1} << 40) + 1;

/*! \brief A 2-D strided piece of a pointer; element (i, j) is at offset + i*row_stride + j*col_stride. */
class ISliceNode : public ffi::Object {
 public:
  IPointer pointer;
  Affine offset;
  int64_t rows = 1;
  int64_t cols = 1;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  /*! \brief Only elements in [row_begin, row_end) x [col_begin, col_end) exist; absent = whole side. */
  ffi::Optional<Affine> row_begin;
  ffi::Optional<Affine> row_end;
  ffi::Optional<Affine> col_begin;
  ffi::Optional<Affine> col_end;
  //! \brief Strides in dram that sizes of the graph decide, expressions of these; the stride of that side is then
  //! `kOpenStride`.
  ffi::Optional<Affine> row_pitch;
  ffi::Optional<Affine> col_pitch;

  /*! \brief The strides, numbers or not. */
  Affine RowStride() const { return row_pitch ? row_pitch.value() : Affine::Constant(row_stride); }
  Affine ColStride() const { return col_pitch ? col_pitch.value() : Affine::Constant(col_stride); }
  /*! \brief Whether sizes decide a stride. */
  bool OpenStrides() const { return row_pitch.has_value() || col_pitch.has_value(); }

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.ISlice", ISliceNode, ffi::Object);
};

class ISlice : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ISlice, ffi::ObjectRef, ISliceNode);
};

/*! \brief One instruction on one unit; its class, name and dtype select the row of the iOp table. */
class IOpNode : public ffi::Object {
 public:
  /*! \brief "move", "unary", "reduce", ... */
  ffi::String op;
  /*! \brief Second part of the mnemonic: "exp" of unary.exp, "add" of reduce.add; else empty. */
  ffi::String name;
  ffi::String dtype;
  ffi::Array<ISlice> targets;
  ffi::Array<ISlice> sources;
  /*! \brief Parameters by name: axis, scope, value, pad, round, group_size, buffer, base, ... */
  ffi::Map<ffi::String, ffi::Any> attrs;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.IOp", IOpNode, ffi::Object);
};

class IOp : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IOp, ffi::ObjectRef, IOpNode);
};

/*! \brief A counted serial loop of one unit: for var in [0, extent): body. */
class LoopNode : public ffi::Object {
 public:
  ffi::String var;
  int64_t extent = 0;
  /*! \brief IOp and Loop in order. */
  ffi::Array<ffi::ObjectRef> body;
  ffi::Map<ffi::String, ffi::Any> attrs;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.Loop", LoopNode, ffi::Object);
};

class Loop : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Loop, ffi::ObjectRef, LoopNode);
};

/*! \brief A device: groups of units and the memory each level offers. */
class HardwareModelNode : public ffi::Object {
 public:
  ffi::String name;
  /*! \brief "cpu", "cuda", "ascend", "bang". */
  ffi::String kind;
  int64_t num_groups = 1;
  int64_t num_units = 1;
  /*! \brief Bytes of reg a unit may use. */
  int64_t reg_bytes = 0;
  /*! \brief Bytes of sram a group may use; 0 = the device has none. */
  int64_t sram_bytes = 0;
  /*! \brief Bytes of one vector instruction. */
  int64_t vector_bytes = 0;
  /*! \brief Further figures by name (cache sizes, bandwidths, alignment), with their unit in the name. */
  ffi::Map<ffi::String, ffi::Any> figures;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.HardwareModel", HardwareModelNode, ffi::Object);
};

class HardwareModel : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(HardwareModel, ffi::ObjectRef, HardwareModelNode);
};

/*! \brief One custom operator: pointers (parameters first, in the order of the signature), hardware, loop tree. */
class IGraphNode : public ffi::Object {
 public:
  ffi::String name;
  HardwareModel hardware;
  //! \brief Parallel groups and units per group that the operator is written for; pid counts 0..groups*units.  Where
  //! sizes decide the number of groups, the greatest.
  int64_t num_groups = 1;
  int64_t num_units = 1;
  ffi::Array<IPointer> pointers;
  ffi::Array<ffi::ObjectRef> body;
  ffi::Map<ffi::String, ffi::Any> attrs;
  /*! \brief The integers that the kernel gets when it is launched. */
  ffi::Array<Size> sizes;
  /*! \brief The number of groups as an expression of sizes; absent where it is `num_groups`. */
  ffi::Optional<Affine> groups;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.IGraph", IGraphNode, ffi::Object);
};

class IGraph : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IGraph, ffi::ObjectRef, IGraphNode);
};

}  // namespace uir
