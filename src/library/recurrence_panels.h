// SPDX-License-Identifier: Apache-2.0
// One step of a recurrence on a panel, for vectors of kLanes floats. No guard: recurrence.cc includes this for
// every width, each in a namespace and for instructions of its own.

#include "library/vector_math.h"

/*! Vectors of a group of columns. */
constexpr int kVectors = kColumns / kLanes;

/*! e^80 times the denominator of a tanh is below 2^126: a gate that is further shut passes as good as nothing. */
constexpr float kShut = 80.0f;

//! What the gates of one vector of columns of a row, or of two (V), read and write. Those beyond the hidden ones are 0
//! and stay unwritten; kWhole: there are none.
template <typename Cell, bool kWhole, typename V>
class Operands {
 public:
  /*! `sums` are those of the rows from `top` on; the vector, or the first of both, has number `number` of them. */
  UIR_INLINE Operands(const Step& step, const Vector* sums, int64_t top, int64_t panel, int64_t number) : step_(step) {
    constexpr int kRow = Cell::kBlocks * kVectors;
    for (int i = 0; i < kCount; ++i) {
      const int64_t row = (number + i) / kRow, v = (number + i) % kRow, hidden = step.attrs.hidden;
      sums_[i] = sums + row * Cell::kGates * kRow + v;
      column_[i] = panel * kRow * kLanes + v * kLanes;
      x_[i] = step.inputs + (top + row) * Cell::kGates * hidden + column_[i];
      state_[i] = (top + row) * hidden + column_[i];
    }
  }

  /*! What inputs and state add to a gate. */
  UIR_INLINE V Gate(int gate) const { return X(gate) + Sum(gate); }
  UIR_INLINE V X(int gate) const {
    return Each([&](int i) { return Read(x_[i] + gate * step_.attrs.hidden, i); });
  }
  UIR_INLINE V Sum(int gate) const {
    return Each([&](int i) { return sums_[i][gate * Cell::kBlocks * kVectors]; });
  }
  UIR_INLINE V Before() const {
    return Each([&](int i) { return Read(step_.before + state_[i], i); });
  }
  UIR_INLINE V Bias() const {
    return Each([&](int i) { return Read(step_.data.bias + column_[i], i); });
  }
  UIR_INLINE V Kept() const {
    return Each([&](int i) { return Read(step_.data.last_cell + state_[i], i); });
  }
  UIR_INLINE void Keep(const V& cell) const { Write(step_.data.last_cell, cell); }
  UIR_INLINE void Finish(const V& after) const { Write(step_.after, after); }

 private:
  static constexpr int kCount = sizeof(V) / sizeof(Vector);

  template <typename Load>
  static UIR_INLINE V Each(const Load& load) {
    if constexpr (kCount == 2) {
      return {load(0), load(1)};
    } else {
      return load(0);
    }
  }
  UIR_INLINE Vector Read(const float* from, int i) const {
    if (kWhole) return *reinterpret_cast<const Unaligned*>(from);
    Vector found;
    Get(found, from, step_.attrs.hidden - column_[i]);
    return found;
  }
  UIR_INLINE void Write(float* state, const V& given) const {
    if constexpr (kCount == 2) {
      WriteOne(state, given.a, 0);
      WriteOne(state, given.b, 1);
    } else {
      WriteOne(state, given, 0);
    }
  }
  UIR_INLINE void WriteOne(float* state, const Vector& given, int i) const {
    if (kWhole) {
      *reinterpret_cast<Unaligned*>(state + state_[i]) = given;
    } else {
      Put(state + state_[i], given, step_.attrs.hidden - column_[i]);
    }
  }

  const Step& step_;
  const Vector* sums_[kCount];
  const float* x_[kCount];
  int64_t column_[kCount], state_[kCount];
};

// Cells: sigmoid x = 1 / (1 + e^-x), tanh x = n / d; fractions are divided where they meet.

struct LstmGates {
  static constexpr int kGates = 4, kBlocks = 1;
  template <typename V, typename At>
  static UIR_INLINE void Run(const At& at) {
    const V in = ExpOf<true>(at.Gate(0), kShut) + 1.0f, forget = ExpOf<true>(at.Gate(1), kShut) + 1.0f;
    V n, d;
    TanhRatio(at.Gate(2), n, d);
    const V out = ExpOf<true>(at.Gate(3), kShut) + 1.0f;
    const V cell = Quotient(at.Kept(), forget) + Quotient(n, d * in);
    at.Keep(cell);
    TanhRatio(cell, n, d);
    at.Finish(Quotient(n, d * out));
  }
};

struct GruGates {
  static constexpr int kGates = 3, kBlocks = 1;
  template <typename V, typename At>
  static UIR_INLINE void Run(const At& at) {
    const V reset = ExpOf<true>(at.Gate(0), kShut) + 1.0f, update = ExpOf<true>(at.Gate(1), kShut);
    V n, d;
    TanhRatio(at.X(2) + Quotient(at.Sum(2) + at.Bias(), reset), n, d);
    // z h + (1 - z) n / d, z = 1 / (1 + update)
    at.Finish(Quotient(n * update + at.Before() * d, d * (update + 1.0f)));
  }
};

template <bool kTanh>
struct RnnGates {
  static constexpr int kGates = 1, kBlocks = 4;
  template <typename V, typename At>
  static UIR_INLINE void Run(const At& at) {
    V sum = at.Gate(0);
    if constexpr (kTanh) {
      Tanh(sum);
    } else {
      sum = AtLeastZero(sum);
    }
    at.Finish(sum);
  }

 private:
  static UIR_INLINE Vector AtLeastZero(const Vector& x) { return x < 0.0f ? Vector{} : x; }  // NaN stays
  static UIR_INLINE Pair AtLeastZero(const Pair& x) { return {AtLeastZero(x.a), AtLeastZero(x.b)}; }
};

/*! Most rows that share what is read of a panel. */
constexpr int kMost = kLanes == 4 ? 3 : 6;
/*! Most sums in registers. */
constexpr int kSums = kLanes == 16 ? 24 : 12;
/*! Most rows whose sums are kept until all groups of a panel are done, in the cache of the first level. */
constexpr int kChunk = 48;

/*! Of how many groups of columns the sums of so many rows are in registers at a time. */
constexpr int GroupsOf(int rows, int groups) {
  int at_once = std::min(groups, std::max(1, kSums / (rows * kVectors)));
  while (groups % at_once != 0) --at_once;
  return at_once;
}

/*! Number kPlace of the sums of a tile: what there are fewer of, rows or vectors, stays in registers meanwhile. */
template <int kRows, int kWide, int kPlace>
struct Place {
  static constexpr bool kByRows = kWide < kRows;
  static constexpr int kRow = kByRows ? kPlace / kWide : kPlace % kRows;
  static constexpr int kVector = kByRows ? kPlace % kWide : kPlace / kRows;
  static constexpr int kSum = kRow * kWide + kVector, kGroup = kVector / kVectors;
  static constexpr int kColumn = kVector % kVectors * kLanes;
};

//! sums[row][vector] += state[row] x w[vector] for one depth; without a loop, for GCC keeps in registers what has
//! numbers for places.
template <int kRows, int kWide, int... kPlaces>
UIR_INLINE void Accumulate(Vector* sums, const float* w, int64_t group, const float* state, int64_t hidden,
                           std::integer_sequence<int, kPlaces...>) {
  ((sums[Place<kRows, kWide, kPlaces>::kSum] +=
    *reinterpret_cast<const Unaligned*>(w + Place<kRows, kWide, kPlaces>::kGroup * group +
                                        Place<kRows, kWide, kPlaces>::kColumn) *
    state[Place<kRows, kWide, kPlaces>::kRow * hidden]),
   ...);
}

//! sums[row] = state[row] x w for kRows rows and kGroups groups. Where they are few every other depth has sums of its
//! own, so that an addition need not wait for the one before.
template <int kRows, int kGroups>
UIR_INLINE void MultiplyTile(const float* state, int64_t hidden, const float* w, Vector* sums, int64_t row_sums) {
  constexpr int kWide = kGroups * kVectors, kPlaces = kRows * kWide, kDepth = kPlaces < 8 ? 2 : 1;
  constexpr std::make_integer_sequence<int, kPlaces> places;
  const int64_t group = hidden * kColumns;
  Vector parts[kDepth][kPlaces] = {};
  int64_t k = 0;
#pragma GCC unroll 4
  for (; k <= hidden - kDepth; k += kDepth) {
    Accumulate<kRows, kWide>(parts[0], w + k * kColumns, group, state + k, hidden, places);
    if constexpr (kDepth == 2) {
      Accumulate<kRows, kWide>(parts[1], w + (k + 1) * kColumns, group, state + k + 1, hidden, places);
    }
  }
  if constexpr (kDepth == 2) {
    if (k < hidden) Accumulate<kRows, kWide>(parts[0], w + k * kColumns, group, state + k, hidden, places);
    for (int place = 0; place < kPlaces; ++place) parts[0][place] += parts[1][place];
  }
  for (int row = 0; row < kRows; ++row) {
    for (int v = 0; v < kWide; ++v) sums[row * row_sums + v] = parts[0][row * kWide + v];
  }
}

/*! Some groups, a multiple of those that go at once. */
template <int kRows, int kGroups>
UIR_INLINE void MultiplyGroups(int groups, const float* state, int64_t hidden, const float* w, Vector* sums) {
  constexpr int kAtOnce = GroupsOf(kRows, kGroups);
  for (int g = 0; g < groups; g += kAtOnce) {
    MultiplyTile<kRows, kAtOnce>(state, hidden, w + g * hidden * kColumns, sums + g * kVectors, kGroups * kVectors);
  }
}

template <int kGroups>
void MultiplyRows(int64_t rows, int groups, const float* state, int64_t hidden, const float* w, Vector* sums) {
  switch (rows) {
    case 1:
      return MultiplyGroups<1, kGroups>(groups, state, hidden, w, sums);
    case 2:
      return MultiplyGroups<2, kGroups>(groups, state, hidden, w, sums);
    case 3:
      return MultiplyGroups<3, kGroups>(groups, state, hidden, w, sums);
    case 4:
      return MultiplyGroups<std::min(4, kMost), kGroups>(groups, state, hidden, w, sums);
    case 5:
      return MultiplyGroups<std::min(5, kMost), kGroups>(groups, state, hidden, w, sums);
    default:
      return MultiplyGroups<kMost, kGroups>(groups, state, hidden, w, sums);
  }
}

/*! The gates of some rows. */
template <typename Cell, bool kWhole>
UIR_INLINE void RunGates(const Step& step, const Vector* sums, int64_t top, int64_t rows, int64_t panel) {
  const int64_t count = rows * Cell::kBlocks * kVectors;
  int64_t number = 0;
  for (; number + 2 <= count; number += 2) {
    Cell::template Run<Pair>(Operands<Cell, kWhole, Pair>(step, sums, top, panel, number));
  }
  if (number < count) Cell::template Run<Vector>(Operands<Cell, kWhole, Vector>(step, sums, top, panel, number));
}

/*! The columns of a panel. */
template <typename Cell>
void RunPanel(const Step& step, int64_t panel) {
  constexpr int kGroups = Cell::kGates * Cell::kBlocks, kWide = kGroups * kVectors;
  const int64_t hidden = step.attrs.hidden, batch = step.attrs.batch, group = hidden * kColumns;
  const float* weight = step.data.panels + panel * kGroups * group;
  Vector sums[kChunk * kWide];
  for (int64_t top = 0, rows, chunks = CeilDiv(batch, kChunk); top < batch; top += rows, --chunks) {
    rows = CeilDiv(batch - top, chunks);
    // blocks of rows as high as each other; all of them read some groups, which are in the cache then, before the next
    const int64_t blocks = CeilDiv(rows, kMost);
    const int at_once = GroupsOf(static_cast<int>(rows / blocks), kGroups);
    for (int g = 0; g < kGroups; g += at_once) {
      for (int64_t row = 0, high, left = blocks; row < rows; row += high, --left) {
        high = CeilDiv(rows - row, left);
        MultiplyRows<kGroups>(high, at_once, step.before + (top + row) * hidden, hidden, weight + g * group,
                              sums + row * kWide + g * kVectors);
      }
    }
    if ((panel + 1) * Cell::kBlocks * kColumns <= hidden) {
      RunGates<Cell, true>(step, sums, top, rows, panel);
    } else {
      RunGates<Cell, false>(step, sums, top, rows, panel);
    }
  }
}

using Panel = void (*)(const Step&, int64_t);
/*! By `Cell`. */
constexpr Panel kPanels[] = {RunPanel<LstmGates>, RunPanel<GruGates>, RunPanel<RnnGates<true>>,
                             RunPanel<RnnGates<false>>};
