// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/emitter.h"

#include <algorithm>

namespace uir::codegen::cuda {

Emitter::Emitter(const Plan& plan, const BodyPlan& body, Printer& out, Names& names, Needs& needs)
    : plan(plan), body(body), out(out), names(names), needs(needs), scope(plan.scope()) {
  for (const IPointer& pointer : plan.graph()->pointers) {
    std::string name(pointer->name);
    const Home& home = plan.HomeOf(name);
    if (!body.used().count(name) && home.kind != Home::Kind::kDram) continue;
    std::string text = names.Fresh(name);
    texts_[name] = text;
    if (home.kind != Home::Kind::kSram && home.kind != Home::Kind::kScratch) continue;
    const ScalarType& type = TypeOf(std::string(pointer->dtype));
    needs.Core("shared_at");
    Prologue("auto " + text + " = shared_at<" + type.stored + ", " + Text(pointer->size) + ">(smem, " +
             (home.kind == Home::Kind::kScratch ? "scratch_at + " : "") + Text(home.at) + ");");
  }
}

void Emitter::Declare(const std::string& pointer) {
  const Home& home = plan.HomeOf(pointer);
  for (const IPointer& one : plan.graph()->pointers) {
    if (one->name != pointer) continue;
    const ScalarType& type = TypeOf(std::string(one->dtype));
    needs.Core("reg");
    needs.Dtype(std::string(one->dtype));
    out.Line(std::string("reg<") + type.stored + ", " + Text(home.fragment.size()) + "> " + TextOf(pointer) + ";");
  }
}

Regs Emitter::Temporary(const std::string& hint, const std::string& dtype, const Fragment& fragment) {
  Regs regs;
  regs.name = names.Fresh(hint);
  regs.dtype = dtype;
  regs.fragment = fragment;
  regs.array_blocks_c = fragment.blocks_c();
  needs.Core("reg");
  needs.Dtype(dtype);
  out.Line(std::string("reg<") + TypeOf(dtype).stored + ", " + Text(fragment.size()) + "> " + regs.name + ";");
  return regs;
}

Regs Emitter::Whole(const ISlice& slice) {
  const Home& home = plan.HomeOf(slice);
  Regs regs;
  regs.name = TextOf(std::string(slice->pointer->name));
  regs.dtype = std::string(slice->pointer->dtype);
  regs.fragment = home.fragment;
  regs.array_blocks_c = home.fragment.blocks_c();
  return regs;
}

Regs Emitter::Source(const Operand& operand, const std::string& outside) {
  const ISlice& slice = operand.slice;
  std::string dtype(slice->pointer->dtype), name(slice->pointer->name);
  if (operand.way == Operand::Way::kInPlace) return Whole(slice);
  if (operand.way == Operand::Way::kConverted) {
    Regs converted = Temporary(name + "_as", dtype, operand.fragment);
    Convert(operand.conversion, converted, Whole(slice));
    return converted;
  }
  Regs loaded = Temporary(name + "_in", dtype, operand.fragment);
  Load(*operand.transfer, loaded, outside.empty() ? Literal(dtype, int64_t{0}) : outside);
  return loaded;
}

Regs Emitter::Target(const Operand& operand) {
  const ISlice& slice = operand.slice;
  if (operand.way == Operand::Way::kInPlace) {
    Regs whole = Whole(slice);
    if (operand.spares) whole.spare = BoxOf(slice);
    return whole;
  }
  return Temporary(std::string(slice->pointer->name) + "_out", std::string(slice->pointer->dtype), operand.fragment);
}

void Emitter::Commit(const Operand& operand, const Regs& regs) {
  if (operand.way == Operand::Way::kInPlace) return;
  if (operand.way == Operand::Way::kMoved) return Store(*operand.transfer, regs);
  Regs whole = Whole(operand.slice);
  if (!operand.spares) return Convert(operand.conversion, whole, regs);
  Regs converted = Temporary(regs.name + "_as", regs.dtype, whole.fragment);
  Convert(operand.conversion, converted, regs);
  whole.spare = BoxOf(operand.slice);
  Each(whole, {&converted}, [&](const Cell& at) { Assign(whole, at, converted[at]); });
}

std::string Emitter::Literal(const std::string& dtype, const ffi::Any& value) {
  const ScalarType& type = TypeOf(dtype);
  needs.Dtype(dtype);
  for (const std::string& helper : ConversionHelpers(type)) needs.Helper(helper);
  if (auto number = value.as<int64_t>()) return StoredLiteral(type, *number);
  return StoredLiteral(type, value.cast<double>());
}

std::string Emitter::TemporaryScratch() {
  Prologue("// what an iOp needs scratch for while it runs");
  Prologue("const int temporary_at = scratch_at + " + Text(plan.scratch_bytes()) + ";");
  return "temporary_at";
}

void Emitter::Prologue(const std::string& line) {
  if (std::find(prologue_.begin(), prologue_.end(), line) == prologue_.end()) prologue_.push_back(line);
}

}  // namespace uir::codegen::cuda
