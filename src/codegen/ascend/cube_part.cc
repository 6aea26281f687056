// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/cube_part.h"

#include "codegen/ascend/api.h"
#include "codegen/ascend/cube.h"
#include "codegen/ascend/emitter.h"
#include "codegen/ascend/kernel.h"
#include "codegen/ascend/sync_text.h"
#include "codegen/pipes/plan.h"
#include "codegen/tiles/count.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief The iOps in order, as the vector core counts them; loops without a contraction are left out. */
void WalkCube(const ffi::Array<ffi::ObjectRef>& body, const Products& products, Emitter* e, Cube* cube, int* position) {
  for (const ffi::ObjectRef& node : body) {
    if (auto loop = node.as<Loop>()) {
      if (tiles::CountIOps((*loop)->body, [](const IOp& iop) { return iop->op == "contract"; }) == 0) {
        *position += tiles::CountIOps((*loop)->body, [](const IOp&) { return true; });
        continue;
      }
      e->Enter(*loop);
      WalkCube((*loop)->body, products, e, cube, position);
      e->Leave(*loop);
      for (const Product* product : products.CarriedBy(*loop)) {
        e->Begin(product->iop, *position);
        cube->Store(*product);
        e->End();
      }
      continue;
    }
    const Product* product = products.At(*position);
    if (product != nullptr) {
      e->Begin(product->iop, *position);
      cube->Multiply(*product);
      e->End();
    }
    ++*position;
  }
}

}  // namespace

std::vector<std::string> PrintCubePart(Plan* plan, const Products& products, const tiles::Dealing& dealing,
                                       int64_t first, Printer* out) {
  // the same names as in the vector core's part, which is a scope of its own
  Names names(Reserved());
  Emitter e(plan, &names);
  Cube cube(&e);
  int position = 0;
  WalkCube(plan->graph()->body, products, &e, &cube, &position);
  pipes::Plan planned = tiles::PlanGroups(e, e.Take(), pipes::VocabularyOf("ascend cube"),
                                          std::string(plan->graph()->name) + ", cube core", dealing);
  out->Line(TypeName("TPipe") + " pipe;");
  for (const CubeBuffer& buffer : cube.Buffers()) {
    out->Line(TypeName("TBuf", {buffer.position}) + " " + buffer.name + ";");
    out->Line(Call("", "TPipe.InitBuffer", "member", {}, {"pipe", buffer.name, std::to_string(buffer.bytes)}) + ";");
  }
  for (const CubeTensor& tensor : cube.tensors()) {
    out->Line(TypeName("LocalTensor", {tensor.type}) + " " + tensor.name + " = " +
              Call("", "TBuf.GetWithOffset", "member", {tensor.type},
                   {tensor.buffer, std::to_string(tensor.size), std::to_string(tensor.begin)}) +
              ";");
  }
  return PrintTree(planned, e.every_scope(), first, out);
}

}  // namespace uir::codegen::ascend
