// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/emitter.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"

namespace uir::codegen::cuda {

Emitter::Emitter(const Plan& plan, const std::vector<Use>& uses, Printer& out, Names& names, Needs& needs)
    : plan(plan), out(out), names(names), needs(needs), scope(plan.scope()), uses_(uses) {
  std::map<std::string, int> writers, readers;
  for (const Use& use : uses) {
    ++(use.write ? writers : readers)[use.pointer()];
  }
  for (const IPointer& pointer : plan.graph()->pointers) {
    std::string name(pointer->name);
    const Home& home = plan.HomeOf(name);
    bool used = writers[name] + readers[name] > 0;
    if (!used && home.kind != Home::Kind::kDram) continue;
    std::string text = names.Fresh(name);
    texts_[name] = text;
    // lanes meet in memory that some of them write and others read, or that two iOps write
    bool meets = writers[name] > 1 || (writers[name] > 0 && readers[name] > 0);
    if (home.kind == Home::Kind::kSram || home.kind == Home::Kind::kScratch) {
      bool scratch = home.kind == Home::Kind::kScratch;
      const ScalarType& type = TypeOf(std::string(pointer->dtype));
      needs.Core("shared_at");
      Prologue("auto " + text + " = shared_at<" + type.stored + ", " + Text(pointer->size) + ">(smem, " +
               (scratch ? "scratch_at + " : "") + Text(home.at) + ");");
      tracked_.insert(name);
    } else if (home.kind == Home::Kind::kDram && meets) {
      tracked_.insert(name);
    }
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

Regs Emitter::Source(const ISlice& slice, const Layout& layout) {
  const Home& home = plan.HomeOf(slice);
  Fragment wanted(layout, slice->rows, slice->cols);
  std::string dtype(slice->pointer->dtype), name(slice->pointer->name);
  if (home.registers()) {
    Regs whole = Whole(slice);
    if (SameHolding(whole.fragment, wanted)) return whole;
    Regs converted = Temporary(name + "_as", dtype, wanted);
    Convert(converted, whole);
    return converted;
  }
  Regs loaded = Temporary(name + "_in", dtype, wanted);
  Load(loaded, slice, Literal(dtype, int64_t{0}));
  return loaded;
}

Regs Emitter::Target(const ISlice& slice, const Layout& layout) {
  Fragment wanted(layout, slice->rows, slice->cols);
  std::string dtype(slice->pointer->dtype), name(slice->pointer->name);
  if (plan.HomeOf(slice).registers()) {
    Regs whole = Whole(slice);
    if (SameHolding(whole.fragment, wanted)) {
      if (plan.SparesOutside(slice)) whole.spare = BoxOf(slice);
      return whole;
    }
  }
  return Temporary(name + "_out", dtype, wanted);
}

void Emitter::Commit(const ISlice& slice, const Regs& regs) {
  if (!plan.HomeOf(slice).registers()) {
    Store(slice, regs);
    return;
  }
  Regs whole = Whole(slice);
  if (whole.name == regs.name) return;
  if (!plan.SparesOutside(slice)) {
    Convert(whole, regs);
    return;
  }
  Regs converted = Temporary(regs.name + "_as", regs.dtype, whole.fragment);
  Convert(converted, regs);
  whole.spare = BoxOf(slice);
  Each(whole, {&converted}, [&](const Cell& at) { Assign(whole, at, converted[at]); });
}

std::string Emitter::Literal(const std::string& dtype, const ffi::Any& value) {
  const ScalarType& type = TypeOf(dtype);
  needs.Dtype(dtype);
  for (const std::string& helper : ConversionHelpers(type)) needs.Helper(helper);
  if (auto number = value.as<int64_t>()) return StoredLiteral(type, *number);
  return StoredLiteral(type, value.cast<double>());
}

int64_t Emitter::AllocateShared(int64_t bytes, int64_t align) {
  int64_t at = RoundUp(plan.sram_bytes() + extra_shared_bytes_, align);
  extra_shared_bytes_ = at + bytes - plan.sram_bytes();
  return at;
}

std::string Emitter::TemporaryScratch(int64_t bytes) {
  temporary_scratch_bytes_ = std::max(temporary_scratch_bytes_, bytes);
  Prologue("// what an iOp needs scratch for while it runs");
  Prologue("const int temporary_at = scratch_at + " + Text(plan.scratch_bytes()) + ";");
  return "temporary_at";
}

void Emitter::Prologue(const std::string& line) {
  if (std::find(prologue_.begin(), prologue_.end(), line) == prologue_.end()) prologue_.push_back(line);
}

void Emitter::Refuse(const std::string& what, const std::string& need, const std::string& limit,
                     const std::string& remedy) const {
  CodegenError(what, where, need, limit, remedy);
}

}  // namespace uir::codegen::cuda
