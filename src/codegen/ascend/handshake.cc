// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/handshake.h"

#include "codegen/ascend/api.h"

namespace uir::codegen::ascend {

namespace {

//! \brief Lines on the scalar pipe; `blocks`: the core issues nothing before they are done.
//!
//! The vector core sets flags on MTE2, behind the loads that it was given: what it has stored is waited for by a flag
//! of its own, which the planner of syncs sets.
void Signal(Emitter& e, const std::vector<std::string>& lines, const std::vector<pipes::Region>& reads, bool blocks) {
  e.Do("S", lines, reads, blocks);
}

}  // namespace

std::string SetLine(const std::string& pipe, Handshake flag) {
  return Call("", "CrossCoreSetFlag", "plain", {}, {pipe, std::to_string(flag)}) + ";";
}

std::string WaitLine(Handshake flag) {
  return Call("", "CrossCoreWaitFlag", "plain", {}, {std::to_string(flag)}) + ";";
}

void HandOver(Emitter& e, const Product& product) {
  std::vector<pipes::Region> reads;
  for (const ISlice& factor : product.iop->sources) {
    if (factor->pointer->role != "in") reads.push_back(Reads(e.TileOf(factor)));
  }
  if (product.carrying.empty()) {
    Signal(e, {SetLine("MTE2", kReady), WaitLine(kDone)}, reads, true);
  } else if (product.staged) {
    Signal(e, {SetLine("MTE2", kReady), WaitLine(kTaken)}, reads, true);
  }
}

void OpenProduct(Emitter& e, const Product& product, int position) {
  if (!product.guarded) return;
  e.Begin(product.iop, position);
  Signal(e, {SetLine("MTE2", kFree) + "  // the cube core may store its result"}, {}, false);
  e.End();
}

void CloseProduct(Emitter& e, const Product& product, int position) {
  e.Begin(product.iop, position);
  Signal(e, {WaitLine(kDone) + "  // it has"}, {}, true);
  e.End();
}

}  // namespace uir::codegen::ascend
