// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/conflicts.h"

#include <algorithm>
#include <set>

#include "base/rounding.h"
#include "igraph/space.h"

namespace uir::codegen::pipes {

namespace {

/*! \brief A period that is never reached: the loop is run whole, its iterations are themselves. */
constexpr int64_t kNever = int64_t{1} << 40;
/*! \brief Residues of names that no loop binds, all together; with more, a conflict is assumed. */
constexpr int64_t kMostResidues = 64;
constexpr int64_t kEverywhere = int64_t{1} << 60;

bool Relevant(const Bytes& a, const Bytes& b) { return a.memory == b.memory && (a.write || b.write); }

}  // namespace

Conflicts::Conflicts(const Program& program, std::vector<int64_t> extents)
    : program_(program), extents_(std::move(extents)) {
  int bound = static_cast<int>(program_.loops.size());
  for (const Op& op : program_.ops) {
    Space space;
    for (int loop : op.loops) {
      space.Bind(program_.loops[loop].var, {{0, std::max<int64_t>(program_.loops[loop].extent - 1, 0)}, 1});
    }
    std::vector<Range> spans;
    for (size_t i = 0; i < op.regions.size(); ++i) {
      const Bytes& bytes = op.regions[i];
      std::set<int> used;
      bytes.begin.Variables(&used);
      Range span{-kEverywhere, kEverywhere};
      if (!bytes.whole && (used.empty() || *used.rbegin() < bound)) {
        span = space.RangeOf(op.instruction->regions[i].begin) + Range{0, bytes.bytes};
        for (auto [count, stride] : bytes.dims) {
          span = span + Range{0, count - 1} * stride;
        }
      }
      spans.push_back(span);
    }
    spans_.push_back(std::move(spans));
  }
}

int64_t Conflicts::PeriodOf(int variable) const {
  int bound = static_cast<int>(program_.loops.size());
  if (variable >= bound) return program_.frees[variable - bound].period;
  const LoopOf& loop = program_.loops[variable];
  return extents_[variable] == loop.extent ? kNever : loop.period;
}

int64_t Conflicts::Residue(int loop, int64_t iteration) const { return iteration % PeriodOf(loop); }

int64_t Conflicts::Times(int loop, int64_t residue) const {
  int64_t period = PeriodOf(loop);
  return period == kNever ? 1 : CeilDiv(program_.loops[loop].extent - residue, period);
}

bool Conflicts::Possible(int first, int second) const {
  const std::vector<Bytes>& mine = program_.ops[first].regions;
  const std::vector<Bytes>& theirs = program_.ops[second].regions;
  for (size_t i = 0; i < mine.size(); ++i) {
    for (size_t j = 0; j < theirs.size(); ++j) {
      if (!Relevant(mine[i], theirs[j])) continue;
      if (spans_[first][i].low < spans_[second][j].high && spans_[second][j].low < spans_[first][i].high) return true;
    }
  }
  return false;
}

int Conflicts::Carrier(const Instance& first, const Instance& second) const {
  const std::vector<int>& mine = program_.ops[first.op].loops;
  const std::vector<int>& theirs = program_.ops[second.op].loops;
  size_t common = 0;
  while (common < mine.size() && common < theirs.size() && mine[common] == theirs[common] &&
         first.iterations[common] == second.iterations[common]) {
    ++common;
  }
  return static_cast<int>(common);
}

bool Conflicts::Meet(const Instance& first, const Instance& second) {
  // Iterations outside of the carrying loop count by their residues, the two of the carrying loop by the first one's
  // residue and the distance, all others by their residues.
  int carrier = Carrier(first, second);
  std::vector<int64_t> key{first.op, second.op, carrier};
  for (const Instance* one : {&first, &second}) {
    const std::vector<int>& around = program_.ops[one->op].loops;
    for (size_t l = 0; l < around.size(); ++l) key.push_back(Residue(around[l], one->iterations[l]));
  }
  const std::vector<int>& loops = program_.ops[second.op].loops;
  bool carried = carrier < static_cast<int>(std::min(loops.size(), first.iterations.size())) &&
                 loops[carrier] == program_.ops[first.op].loops[carrier];
  if (carried) key.push_back(second.iterations[carrier] - first.iterations[carrier]);
  auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  bool result = false;
  for (const Bytes& a : program_.ops[first.op].regions) {
    for (const Bytes& b : program_.ops[second.op].regions) {
      if (!result && Relevant(a, b)) result = Meet(a, b, first, second);
    }
  }
  known_.emplace(std::move(key), result);
  return result;
}

std::string Conflicts::Kinds(const Instance& first, const Instance& second) const {
  std::set<std::string> kinds;
  for (const Bytes& a : program_.ops[first.op].regions) {
    for (const Bytes& b : program_.ops[second.op].regions) {
      if (Relevant(a, b) && Meet(a, b, first, second)) kinds.insert(!b.write ? "raw" : a.write ? "waw" : "war");
    }
  }
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + kind;
  return text;
}

bool Conflicts::Meet(const Bytes& a, const Bytes& b, const Instance& first, const Instance& second) const {
  if (a.bytes <= 0 || b.bytes <= 0) return false;
  if (a.whole || b.whole) return true;
  const std::vector<int>& mine = program_.ops[first.op].loops;
  const std::vector<int>& theirs = program_.ops[second.op].loops;
  size_t carrier = static_cast<size_t>(Carrier(first, second));
  bool carried = carrier < mine.size() && carrier < theirs.size() && mine[carrier] == theirs[carrier];
  size_t variables = program_.loops.size() + program_.frees.size();
  std::vector<int64_t> va(variables, 0), vb(variables, 0);
  std::vector<Dim> dims;
  auto shift = [this](const Bytes& bytes, int loop) {
    // The loop's period is a multiple of that of the expression.
    std::optional<Period> own = bytes.begin.PeriodIn(loop, PeriodOf(loop));
    return own ? own->shift * (PeriodOf(loop) / own->period) : 0;
  };
  auto widen = [&](const Bytes& bytes, int loop, int64_t iteration, std::vector<int64_t>* values, int64_t sign) {
    int64_t residue = Residue(loop, iteration);
    (*values)[loop] = residue;
    int64_t times = Times(loop, residue);
    if (times > 1) dims.emplace_back(times, sign * shift(bytes, loop));
  };
  int64_t distance = 0;
  for (size_t l = 0; l < std::max(mine.size(), theirs.size()); ++l) {
    if (l < carrier) {
      int loop = mine[l];
      int64_t residue = Residue(loop, first.iterations[l]);
      va[loop] = vb[loop] = residue;
      int64_t times = Times(loop, residue);
      if (times > 1) dims.emplace_back(times, shift(b, loop) - shift(a, loop));
    } else if (l == carrier && carried && (PeriodOf(mine[l]) == kNever || shift(a, mine[l]) == shift(b, mine[l]))) {
      distance = second.iterations[l] - first.iterations[l];
      va[mine[l]] = Residue(mine[l], first.iterations[l]);
      vb[mine[l]] = va[mine[l]] + distance;
    } else {
      if (l < mine.size()) widen(a, mine[l], first.iterations[l], &va, -1);
      if (l < theirs.size()) widen(b, theirs[l], second.iterations[l], &vb, 1);
    }
  }
  if (MeetAt(a, b, va, vb, dims)) return true;
  if (distance == 0) return false;
  // Distances beyond those that the run shows for every residue.
  int loop = mine[carrier];
  int64_t period = PeriodOf(loop), step = shift(b, loop);
  if (period == kNever || step == 0) return false;
  for (int64_t far = extents_[loop] - period + 1; far <= extents_[loop]; ++far) {
    vb[loop] = va[loop] + far;
    int64_t times = (program_.loops[loop].extent - 1 - va[loop] - far) / period + 1;
    if (program_.loops[loop].extent - 1 < va[loop] + far) continue;
    std::vector<Dim> more = dims;
    more.emplace_back(times, step);
    if (MeetAt(a, b, va, vb, std::move(more))) return true;
  }
  return false;
}

bool Conflicts::MeetAt(const Bytes& a, const Bytes& b, const std::vector<int64_t>& va, const std::vector<int64_t>& vb,
                       std::vector<Dim> dims) const {
  for (auto [count, stride] : a.dims) dims.emplace_back(count, -stride);
  for (auto [count, stride] : b.dims) dims.emplace_back(count, stride);
  // Names without a loop have the same value on both sides, whichever it is.
  std::set<int> used;
  a.begin.Variables(&used);
  b.begin.Variables(&used);
  std::vector<int> frees;
  int64_t residues = 1;
  for (int v : used) {
    if (v < static_cast<int>(program_.loops.size())) continue;
    int64_t period = PeriodOf(v);
    std::optional<Period> pa = a.begin.PeriodIn(v, period), pb = b.begin.PeriodIn(v, period);
    if (pa->shift * (period / pa->period) != pb->shift * (period / pb->period)) return true;
    frees.push_back(v);
    residues *= period;
    if (residues > kMostResidues) return true;
  }
  std::vector<int64_t> x = va, y = vb;
  for (int64_t r = 0; r < residues; ++r) {
    int64_t rest = r;
    for (int v : frees) {
      x[v] = y[v] = rest % PeriodOf(v);
      rest /= PeriodOf(v);
    }
    if (Reaches(b.begin.Evaluate(y) - a.begin.Evaluate(x), dims, -b.bytes, a.bytes)) return true;
  }
  return false;
}

}  // namespace uir::codegen::pipes
