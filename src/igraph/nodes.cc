// SPDX-License-Identifier: Apache-2.0
#include "igraph/nodes.h"

#include <tvm/ffi/reflection/registry.h>

namespace uir {

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  using Attrs = ffi::Map<ffi::String, ffi::Any>;

  refl::ObjectDef<IPointerNode>()
      .def_ro("name", &IPointerNode::name)
      .def_ro("level", &IPointerNode::level)
      .def_ro("dtype", &IPointerNode::dtype)
      .def_ro("size", &IPointerNode::size)
      .def_ro("role", &IPointerNode::role, refl::DefaultValue(ffi::String("tmp")))
      .def_ro("dims", &IPointerNode::dims, refl::DefaultValue(ffi::Array<Affine>()));

  refl::ObjectDef<ISliceNode>()
      .def_ro("pointer", &ISliceNode::pointer)
      .def_ro("offset", &ISliceNode::offset)
      .def_ro("rows", &ISliceNode::rows)
      .def_ro("cols", &ISliceNode::cols)
      .def_ro("row_stride", &ISliceNode::row_stride)
      .def_ro("col_stride", &ISliceNode::col_stride)
      .def_ro("row_begin", &ISliceNode::row_begin, refl::DefaultValue(ffi::Optional<Affine>()))
      .def_ro("row_end", &ISliceNode::row_end, refl::DefaultValue(ffi::Optional<Affine>()))
      .def_ro("col_begin", &ISliceNode::col_begin, refl::DefaultValue(ffi::Optional<Affine>()))
      .def_ro("col_end", &ISliceNode::col_end, refl::DefaultValue(ffi::Optional<Affine>()))
      .def_ro("row_pitch", &ISliceNode::row_pitch, refl::DefaultValue(ffi::Optional<Affine>()))
      .def_ro("col_pitch", &ISliceNode::col_pitch, refl::DefaultValue(ffi::Optional<Affine>()));

  refl::ObjectDef<IOpNode>()
      .def_ro("op", &IOpNode::op)
      .def_ro("name", &IOpNode::name)
      .def_ro("dtype", &IOpNode::dtype)
      .def_ro("targets", &IOpNode::targets)
      .def_ro("sources", &IOpNode::sources)
      .def_ro("attrs", &IOpNode::attrs, refl::DefaultValue(Attrs()));

  refl::ObjectDef<LoopNode>()
      .def_ro("var", &LoopNode::var)
      .def_ro("extent", &LoopNode::extent)
      .def_ro("body", &LoopNode::body)
      .def_ro("attrs", &LoopNode::attrs, refl::DefaultValue(Attrs()));

  refl::ObjectDef<HardwareModelNode>()
      .def_ro("name", &HardwareModelNode::name)
      .def_ro("kind", &HardwareModelNode::kind)
      .def_ro("num_groups", &HardwareModelNode::num_groups)
      .def_ro("num_units", &HardwareModelNode::num_units)
      .def_ro("reg_bytes", &HardwareModelNode::reg_bytes)
      .def_ro("sram_bytes", &HardwareModelNode::sram_bytes)
      .def_ro("vector_bytes", &HardwareModelNode::vector_bytes)
      .def_ro("figures", &HardwareModelNode::figures, refl::DefaultValue(Attrs()));

  refl::ObjectDef<IGraphNode>()
      .def_ro("name", &IGraphNode::name)
      .def_ro("hardware", &IGraphNode::hardware)
      .def_ro("num_groups", &IGraphNode::num_groups)
      .def_ro("num_units", &IGraphNode::num_units)
      .def_ro("pointers", &IGraphNode::pointers)
      .def_ro("body", &IGraphNode::body)
      .def_ro("attrs", &IGraphNode::attrs, refl::DefaultValue(Attrs()))
      .def_ro("sizes", &IGraphNode::sizes, refl::DefaultValue(ffi::Array<Size>()))
      .def_ro("groups", &IGraphNode::groups, refl::DefaultValue(ffi::Optional<Affine>()));
}

}  // namespace uir
