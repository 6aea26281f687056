// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/fragments.h"

#include <algorithm>

namespace uir::codegen::cuda {

namespace {

constexpr int kMatrixBytes = 16, kMatrixRows = 8;

/*! \brief Bytes from one line in memory to the next, whichever side lies along it. */
int64_t PitchOf(const FactorPlan& f, int bytes) {
  return (f.depth_stride() == 1 ? f.major_stride() : f.depth_stride()) * bytes;
}

/*! \brief How a whole operand in memory is fetched. */
Fetch FetchOf(const Plan& plan, const FactorPlan& f, const MmaRow& row) {
  const Home& home = plan.HomeOf(f.slice);
  if (home.registers()) return Fetch::kRegisters;
  const int bytes = TypeOf(std::string(f.slice->pointer->dtype)).bytes;
  if (f.major % 8 != 0 || f.depth % row.k != 0) return Fetch::kElements;
  const int64_t align = AccessOf(f.slice, plan.scope()).align, pitch = PitchOf(f, bytes);
  const bool along = f.depth_stride() == 1, shared = home.kind != Home::Kind::kDram;
  if (bytes <= 2) {
    // rows of 16 bytes in memory lie along the contracted side, or across it
    const bool across = f.major_stride() == 1 && (bytes == 2 || f.paired);
    const bool fits = shared && (along || across) && pitch % kMatrixBytes == 0 && align >= kMatrixBytes;
    return fits ? Fetch::kMatrix : Fetch::kElements;
  }
  const int64_t run = int64_t{row.vec} * bytes;
  return along && run <= kLaneBytes && pitch % run == 0 && align >= run ? Fetch::kRuns : Fetch::kElements;
}

//! \brief The row of 16 along the contracted side that row r of a matrix of pairs has.
//!
//! Lane l gets rows 2 * (l % 4) and the next of both matrices, which are rows 4 * (l % 4) to + 3 of the 16; and eight
//! rows of one matrix differ by 8, so that they lie apart in a tile like those of any other matrix.
int64_t PairRow(int matrix, int r) { return 4 * (r / 2) + r % 2 + 2 * ((r / 4 + matrix) % 2); }

std::string PairRowText() { return "4 * (lane % 8 / 2) + lane % 2 + 2 * ((lane / 4 + lane / 8) % 2)"; }

}  // namespace

std::string Plus(std::initializer_list<std::pair<int64_t, std::string>> terms) {
  std::string out;
  int64_t constant = 0;
  for (const auto& [factor, text] : terms) {
    if (text.find_first_not_of("0123456789") == std::string::npos) {
      constant += factor * std::stoll(text);
    } else {
      out += (out.empty() ? "" : " + ") + (factor == 1 ? text : std::to_string(factor) + " * " + text);
    }
  }
  if (out.empty()) return std::to_string(constant);
  return constant == 0 ? out : out + " + " + std::to_string(constant);
}

bool ComesInPairs(const IOp& iop, int source) {
  const ISlice slice = iop->sources[source];
  const bool is_a = source == 0;
  const int64_t major = is_a ? slice->rows : slice->cols, stride = is_a ? slice->row_stride : slice->col_stride;
  return TypeOf(std::string(slice->pointer->dtype)).bytes == 1 && slice->pointer->level == "sram" && stride == 1 &&
         major % (2 * kMatrixRows) == 0;
}

FactorPlan::FactorPlan(const Plan& plan, const IOp& iop, int source, const MmaRow& row)
    : slice(iop->sources[source]), is_a(source == 0), paired(ComesInPairs(iop, source)) {
  major = is_a ? slice->rows : slice->cols;
  depth = is_a ? slice->cols : slice->rows;
  fetch = FetchOf(plan, *this, row);
}

FragmentsPlan FragmentsPlan::Of(StepPlanner& p, const IOp& iop, const MmaRow& row) {
  FragmentsPlan out;
  const Layout layouts[] = {FactorLayoutA(row), FactorLayoutB(row)};
  Bounds bounds[2];
  for (int source : {0, 1}) {
    FactorPlan& f = source == 0 ? out.a : out.b;
    f = FactorPlan(p.plan, iop, source, row);
    if (f.fetch == Fetch::kRegisters) {
      bounds[source] = p.BoundsOf(f.slice);
      f.operand = p.Source(f.slice, layouts[source]);
    } else {
      f.bounds = ReadableBoundsOf(p, iop, source);
      bounds[source] = f.bounds.bounds;
      f.read = p.Reads(f.slice);
    }
  }
  out.limited = bounds[0].cols || out.a.depth % row.k != 0;
  for (int source : {0, 1}) {
    FactorPlan& f = source == 0 ? out.a : out.b;
    if (f.fetch == Fetch::kMatrix && !bounds[source].whole()) f.fetch = Fetch::kElements;
    if (f.fetch == Fetch::kRuns && (out.limited || !bounds[source].whole())) f.fetch = Fetch::kElements;
  }
  return out;
}

FragmentPrinter::FragmentPrinter(Emitter& e, const IOp& iop, const FragmentsPlan& plan, const MmaRow& row)
    : e_(e), iop_(iop), row_(row), a_(plan.a), b_(plan.b), limited_(plan.limited) {
  type_ = &TypeOf(std::string(iop->sources[0]->pointer->dtype));
  wide_ = type_->bytes == 8;
  deep_ = row.k / (4 * row.vec);
  Prepare(&a_);
  Prepare(&b_);
}

void FragmentPrinter::Prepare(Factor* f) {
  if (f->operand) {
    f->box = e_.BoxOf(f->slice);
    f->regs = e_.Source(*f->operand);
    return;
  }
  f->box = ReadableBox(e_, iop_, f->is_a ? 0 : 1, f->bounds);
  e_.Meet(f->read);
}

void FragmentPrinter::FetchA(const std::string& array, const std::string& i, const std::string& k, bool half) {
  if (a_.fetch == Fetch::kMatrix) {
    MatricesA(array, i, k, half);
    return;
  }
  const int downs = per_tile(), alongs = Registers(true) / downs;
  for (int down = 0; down < downs; ++down) {
    // registers go down the rows first, then along the contracted side
    auto to = [&](int along) {
      return array + "[" + Plus({{Registers(true), i}, {1, std::to_string(along * downs + down)}}) + "] = ";
    };
    if (down == 1 && half) {
      for (int along = 0; along < alongs; ++along) e_.out.Line(to(along) + "0;");
      continue;
    }
    const std::string block = Plus({{downs, i}, {1, std::to_string(down)}});
    const std::string major = a_.paired ? Plus({{16, i}, {2, "(lane / 4)"}, {1, std::to_string(down)}})
                                        : Plus({{8, Grouped(block)}, {1, "lane / 4"}});
    if (a_.fetch == Fetch::kRuns) {
      const std::string run = Run(a_, major, k);
      for (int n = 0; n < alongs; ++n) e_.out.Line(to(n) + Rounded(run + ".v[" + std::to_string(n) + "]") + ";");
      continue;
    }
    for (int n = 0; n < alongs; ++n) e_.out.Line(to(n) + Register(a_, block, major, k, n) + ";");
  }
}

void FragmentPrinter::FetchB(const std::string& array, const std::string& j, const std::string& k, int count) {
  if (b_.fetch == Fetch::kMatrix) {
    MatricesB(array, j, k, count);
    return;
  }
  for (int c = 0; c < count; ++c) {
    auto to = [&](int along) { return array + "[" + std::to_string(2 * c + along) + "] = "; };
    const std::string block = Plus({{1, j}, {1, std::to_string(c)}});
    const std::string major = b_.paired ? Plus({{8, Grouped(j)}, {2, "(lane / 4)"}, {1, std::to_string(c)}})
                                        : Plus({{8, Grouped(block)}, {1, "lane / 4"}});
    if (b_.fetch == Fetch::kRuns) {
      const std::string run = Run(b_, major, k);
      for (int n = 0; n < 2; ++n) e_.out.Line(to(n) + Rounded(run + ".v[" + std::to_string(n) + "]") + ";");
      continue;
    }
    for (int n = 0; n < 2; ++n) e_.out.Line(to(n) + Register(b_, block, major, k, n) + ";");
  }
}

/*! \brief ldmatrix: lane l names row l % 8 of the matrix that becomes register l / 8. */
void FragmentPrinter::MatricesA(const std::string& array, const std::string& i, const std::string& k, bool half) {
  auto part = [&](int q) { return array + "[" + Plus({{4, i}, {1, std::to_string(q)}}) + "]"; };
  if (a_.paired) {
    const std::string pairs = Pairs(a_, Plus({{16, i}}), k);
    Split(part(0), part(1), pairs, 0);
    Split(part(2), part(3), pairs, 2);
    return;
  }
  const bool along = a_.depth_stride() == 1;
  const int64_t width = row_.k / 2;  // elements of 16 bytes
  std::string m, d;
  if (along) {
    m = half ? "lane % 8" : "lane % 16";
    d = half ? "lane / 8 % 2" : "lane / 16";
    d = std::to_string(width) + " * (" + d + ")";
  } else {
    m = half ? "0" : "8 * (lane / 8 % 2)";
    d = half ? "lane % 16" : "lane % 8 + 8 * (lane / 16)";
  }
  std::string address = Address(a_, Plus({{8 * per_tile(), i}, {1, m}}), Plus({{row_.k, k}, {1, d}}));
  std::string trans = along ? "" : "_trans";
  if (!half) {
    e_.needs.Intrinsic("ldmatrix_x4" + trans);
    e_.out.Line("ldmatrix_x4" + trans + "(&" + part(0) + ", " + address + ");");
    return;
  }
  e_.needs.Intrinsic("ldmatrix_x2" + trans);
  std::string above = e_.names.Fresh("above");
  e_.out.Line("reg<uint32_t, 2> " + above + ";");
  e_.out.Line("ldmatrix_x2" + trans + "(&" + above + "[0], " + address + ");");
  e_.out.Line(part(0) + " = " + above + "[0];");
  e_.out.Line(part(1) + " = 0;");
  e_.out.Line(part(2) + " = " + above + "[1];");
  e_.out.Line(part(3) + " = 0;");
}

void FragmentPrinter::MatricesB(const std::string& array, const std::string& j, const std::string& k, int count) {
  if (b_.paired) {
    const std::string pairs = Pairs(b_, Plus({{8, Grouped(j)}}), k);
    Split(array + "[0]", array + "[2]", pairs, 0);
    Split(array + "[1]", array + "[3]", pairs, 2);
    return;
  }
  const bool along = b_.depth_stride() == 1;
  const int64_t width = row_.k / 2;
  const bool pair = count == 2;
  std::string m, d;
  if (along) {
    m = pair ? "lane % 8 + 8 * (lane / 16)" : "lane % 8";
    d = std::to_string(width) + " * (lane / 8 % 2)";
  } else {
    m = pair ? "8 * (lane / 16)" : "0";
    d = "lane % 16";
  }
  std::string name = std::string(pair ? "ldmatrix_x4" : "ldmatrix_x2") + (along ? "" : "_trans");
  e_.needs.Intrinsic(name);
  e_.out.Line(name + "(&" + array + "[0], " +
              Address(b_, Plus({{8, Grouped(j)}, {1, m}}), Plus({{row_.k, k}, {1, d}})) + ");");
}

/*! \brief Four matrices of pairs, of 16 of the major side: two for the first 16 of the contracted one, two for the
 * next. */
std::string FragmentPrinter::Pairs(const Factor& f, const std::string& major, const std::string& k) {
  const std::string pairs = e_.names.Fresh("pairs");
  e_.out.Line("reg<uint32_t, 4> " + pairs + ";");
  e_.needs.Intrinsic("ldmatrix_x4_trans");
  e_.out.Line("ldmatrix_x4_trans(&" + pairs + "[0], " +
              Address(f, major, Plus({{row_.k, k}, {1, PairRowText()}, {16, "(lane / 16)"}})) + ");");
  return pairs;
}

void FragmentPrinter::Split(const std::string& even, const std::string& odd, const std::string& pairs, int first) {
  e_.needs.Helper("split_pairs");
  // lanes whose rows of the contracted side the second matrix has first: see PairRow
  e_.out.Line("split_pairs(" + even + ", " + odd + ", " + pairs + "[" + std::to_string(first) + "], " + pairs + "[" +
              std::to_string(first + 1) + "], lane % 4 >= 2);");
}

std::string FragmentPrinter::Address(const Factor& f, const std::string& major, const std::string& depth) {
  auto [r, c] = f.At(major, depth);
  return e_.Element(f.slice, Grouped(r), Grouped(c));
}

/*! \brief The name of a lane's run of a block at step `k`, which one access brings. */
std::string FragmentPrinter::Run(const Factor& f, const std::string& major, const std::string& k) {
  e_.needs.Core("vec");
  e_.needs.Core("load_vec");
  const std::string run = e_.names.Fresh("run");
  const std::string type = std::string(type_->stored) + ", " + std::to_string(row_.vec) + ">";
  const std::string depth = Plus({{4 * row_.vec, Grouped(k)}, {row_.vec, "(lane % 4)"}});
  e_.out.Line("const vec<" + type + " " + run + " = load_vec<" + type + "(" + Address(f, major, depth) + ");");
  return run;
}

//! \brief The value of one fragment register: the elements of a block of 8 along the major side that a lane holds.
//! `along` counts blocks along the contracted side where an instruction takes several, else elements of the block.
std::string FragmentPrinter::Register(const Factor& f, const std::string& block, const std::string& major,
                                      const std::string& k, int along) {
  const int count = wide_ || row_.rounds ? 1 : row_.vec;
  std::string block_k = deep_ == 1 ? k : Plus({{deep_, k}, {1, std::to_string(along)}});
  const int first = deep_ == 1 ? along : 0;
  std::vector<std::string> values;
  for (int n = 0; n < count; ++n) values.push_back(Value(f, block, major, block_k, first + n));
  if (count == 1) return values[0];
  e_.needs.Helper("pack_fragment");
  return "pack_fragment(" + Join(values) + ")";
}

std::string FragmentPrinter::Value(const Factor& f, const std::string& block, const std::string& major,
                                   const std::string& block_k, int n) {
  std::string depth = Plus({{4 * row_.vec, Grouped(block_k)}, {row_.vec, "(lane % 4)"}, {1, std::to_string(n)}});
  std::vector<std::string> where;
  if (f.fetch == Fetch::kElements && f.major % 8 != 0) where.push_back(major + " < " + std::to_string(f.major));
  if (limited_) {
    if (f.depth % row_.k != 0) where.push_back(depth + " < " + std::to_string(f.depth));
    if (a_.box.col_begin) where.push_back(depth + " >= " + Grouped(*a_.box.col_begin));
    if (a_.box.col_end) where.push_back(depth + " < " + Grouped(*a_.box.col_end));
  }
  std::string value;
  if (f.fetch == Fetch::kRegisters) {
    const Fragment& fragment = f.regs.fragment;
    const int64_t blocks = f.is_a ? fragment.blocks_r() : fragment.blocks_c();
    const int64_t blocks_k = f.is_a ? fragment.blocks_c() : fragment.blocks_r();
    if (f.is_a && row_.m == 16 && blocks % 2 != 0) where.push_back(block + " < " + std::to_string(blocks));
    if (blocks_k % deep_ != 0) where.insert(where.begin(), block_k + " < " + std::to_string(blocks_k));
    std::string at = std::to_string(n);
    value = f.is_a ? f.regs.At(Grouped(block), Grouped(block_k), "0", at)
                   : f.regs.At(Grouped(block_k), Grouped(block), at, "0");
  } else {
    AddBox(f, major, &where);
    auto [r, c] = f.At(major, depth);
    value = "*" + Grouped(e_.Element(f.slice, Grouped(r), Grouped(c)));
  }
  value = Rounded(value);
  if (where.empty()) return value;
  return "(" + Join(where, " && ") + " ? " + value + " : " + Nothing() + ")";
}

std::string FragmentPrinter::Rounded(const std::string& value) {
  if (!row_.rounds) return value;
  e_.needs.Intrinsic("to_tf32");
  return "to_tf32(" + value + ")";
}

/*! \brief Memory outside of the valid box is not touched. */
void FragmentPrinter::AddBox(const Factor& f, const std::string& major, std::vector<std::string>* where) {
  const auto& begin = f.is_a ? f.box.row_begin : f.box.col_begin;
  const auto& end = f.is_a ? f.box.row_end : f.box.col_end;
  if (begin) where->push_back(major + " >= " + Grouped(*begin));
  if (end) where->push_back(major + " < " + Grouped(*end));
}

std::string FragmentPrinter::Nothing() const {
  if (row_.rounds) return "0u";
  return StoredLiteral(*type_, 0.0);
}

std::vector<TileAccess> FragmentReads(const Plan& plan, const IOp& iop, int source, const MmaRow& row) {
  const FactorPlan f(plan, iop, source, row);
  const int bytes = TypeOf(std::string(f.slice->pointer->dtype)).bytes;
  const int64_t chunk = kMatrixBytes / bytes;
  std::vector<TileAccess> out;
  // one access for every place of a step of so many elements along both sides
  auto every = [&](int64_t step_m, int64_t step_k, int64_t elements, int lanes, auto at) {
    for (int64_t m = 0; m < f.major; m += step_m) {
      for (int64_t k = 0; k < f.depth; k += step_k) {
        out.push_back({elements, {}});
        for (int lane = 0; lane < lanes; ++lane) {
          const auto [dm, dk] = at(lane);
          if (m + dm < f.major && k + dk < f.depth) out.back().at.push_back(f.At(m + dm, k + dk));
        }
      }
    }
  };
  using Place = std::pair<int64_t, int64_t>;
  if (f.fetch == Fetch::kMatrix && f.paired) {
    for (int matrix : {0, 1}) {
      every(chunk, 2 * kMatrixRows, chunk, kMatrixRows, [matrix](int r) { return Place(0, PairRow(matrix, r)); });
    }
  } else if (f.fetch == Fetch::kMatrix && f.depth_stride() == 1) {
    every(kMatrixRows, chunk, chunk, kMatrixRows, [](int r) { return Place(r, 0); });
  } else if (f.fetch == Fetch::kMatrix) {
    every(chunk, kMatrixRows, chunk, kMatrixRows, [](int r) { return Place(0, r); });
  } else {
    const int vec = row.vec, each = f.fetch == Fetch::kRuns ? vec : 1;
    for (int n = 0; n < vec; n += each) {
      every(kMatrixRows, 4 * vec, each, kLanes, [vec, n](int l) { return Place(l / 4, vec * (l % 4) + n); });
    }
  }
  return out;
}

}  // namespace uir::codegen::cuda
