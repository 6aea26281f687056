// SPDX-License-Identifier: Apache-2.0
// One step of a recurrence on some panels, for vectors of kLanes floats. No guard: recurrence.cc includes this for
// every width, each in a namespace and for instructions of its own.

#include "library/vector_math.h"

/*! One row's operands for a vector of columns of every gate. */
struct Gates {
  int64_t count, hidden;       // columns; from one gate to the next in x
  const float* x;              // what the inputs add
  const float *before, *bias;  // state, GRU's bias
  float *cell, *after;         // LSTM's cell, new state
};

struct LstmGates {
  static constexpr int kGates = 4, kVectors = kColumns / kLanes;
  static UIR_INLINE void Run(const Gates& g, const Vector* sums) {
    Vector in, forget, made, out, cell;
    // one after another, not in a loop: each waits for itself alone
    Add(in, g, sums, 0);
    Sigmoid(in);
    Add(forget, g, sums, 1);
    Sigmoid(forget);
    Add(made, g, sums, 2);
    Tanh(made);
    Add(out, g, sums, 3);
    Sigmoid(out);
    Get(cell, g.cell, g.count);
    cell = forget * cell + in * made;
    Put(g.cell, cell, g.count);
    Tanh(cell);
    Put(g.after, out * cell, g.count);
  }

 private:
  static UIR_INLINE void Add(Vector& to, const Gates& g, const Vector* sums, int gate) {
    Get(to, g.x + gate * g.hidden, g.count);
    to += sums[gate * kVectors];
  }
};

struct GruGates {
  static constexpr int kGates = 3, kVectors = kColumns / kLanes;
  static UIR_INLINE void Run(const Gates& g, const Vector* sums) {
    Vector gate[3], before, bias;
    for (int i = 0; i < 3; ++i) Get(gate[i], g.x + i * g.hidden, g.count);
    Get(bias, g.bias, g.count);
    Get(before, g.before, g.count);
    for (int i = 0; i < 2; ++i) {
      gate[i] += sums[i * kVectors];
      Sigmoid(gate[i]);
    }
    gate[2] += gate[0] * (sums[2 * kVectors] + bias);
    Tanh(gate[2]);
    Put(g.after, gate[2] + gate[1] * (before - gate[2]), g.count);
  }
};

template <bool kTanh>
struct RnnGates {
  static constexpr int kGates = 1, kVectors = 4 * kColumns / kLanes;
  static UIR_INLINE void Run(const Gates& g, const Vector* sums) {
    Vector sum;
    Get(sum, g.x, g.count);
    sum += sums[0];
    if (kTanh) {
      Tanh(sum);
    } else {
      sum = sum < 0.0f ? Vector{} : sum;  // NaN stays
    }
    Put(g.after, sum, g.count);
  }
};

/*! Most rows of a block. */
constexpr int kMost = kLanes == 16 ? 6 : 4;

//! Vectors of a row whose sums are in registers at a time: all of them with 32 registers; else eight sums, as many as
//! an addition takes cycles in two units. With twelve of three rows and more GCC moves sums through memory.
constexpr int PartOf(int rows, int wide) {
  if (kLanes == 16) return wide;
  int part = std::min(wide, (rows <= 2 ? 12 : 8) / rows);
  while (wide % part != 0) --part;
  return part;
}

//! sums[row] = state[row] x panel for kRows rows; kDepth rows of the panel have sums of their own, so that an addition
//! need not wait for the one before.
template <int kRows, int kWide, int kDepth>
UIR_INLINE void Multiply(const float* state, int64_t hidden, const float* panel, Vector (*sums)[kWide]) {
  constexpr int kPart = PartOf(kRows, kWide);
  for (int first = 0; first < kWide; first += kPart) {
    Vector parts[kDepth][kRows][kPart] = {};
    for (int64_t k = 0; k < hidden; k += kDepth) {
      for (int depth = 0; depth < kDepth; ++depth) {
        if (k + depth >= hidden) break;
        for (int column = 0; column < kPart; ++column) {
          const Vector w = *reinterpret_cast<const Unaligned*>(panel + ((k + depth) * kWide + first + column) * kLanes);
          for (int row = 0; row < kRows; ++row) parts[depth][row][column] += w * state[row * hidden + k + depth];
        }
      }
    }
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kPart; ++column) {
        sums[row][first + column] = parts[0][row][column];
        for (int depth = 1; depth < kDepth; ++depth) sums[row][first + column] += parts[depth][row][column];
      }
    }
  }
}

/*! `Multiply` for so many rows, up to `kMost`. */
template <int kWide>
void MultiplyRows(int64_t rows, const float* state, int64_t hidden, const float* panel, Vector (*sums)[kWide]) {
  switch (rows) {
    case 1:
      return Multiply<1, kWide, kLanes == 16 ? 2 : 1>(state, hidden, panel, sums);
    case 2:
      return Multiply<2, kWide, 1>(state, hidden, panel, sums);
    case 3:
      return Multiply<3, kWide, 1>(state, hidden, panel, sums);
    case 4:
      return Multiply<4, kWide, 1>(state, hidden, panel, sums);
    case 5:
      return Multiply<std::min(5, kMost), kWide, 1>(state, hidden, panel, sums);
    default:
      return Multiply<kMost, kWide, 1>(state, hidden, panel, sums);
  }
}

/*! The columns of some panels. */
template <typename Cell>
void RunPanels(const Step& step, Range panels) {
  constexpr int kWide = Cell::kGates * Cell::kVectors;
  const int64_t hidden = step.attrs.hidden, wide = Cell::kGates * hidden, batch = step.attrs.batch;
  Vector sums[kMost][kWide];
  for (int64_t panel = panels.begin; panel < panels.begin + panels.size; ++panel) {
    const float* weight = step.data.panels + panel * hidden * kWide * kLanes;
    const int64_t first = panel * Cell::kVectors * kLanes;
    // blocks of as many rows as each other, for each reads the whole panel
    for (int64_t row = 0, rows, blocks = CeilDiv(batch, kMost); row < batch; row += rows, --blocks) {
      rows = CeilDiv(batch - row, blocks);
      MultiplyRows<kWide>(rows, step.before + row * hidden, hidden, weight, sums);
      for (int64_t r = 0; r < rows; ++r) {
        for (int v = 0; v < Cell::kVectors; ++v) {
          const int64_t column = first + v * kLanes, at = (row + r) * hidden + column;
          if (column >= hidden) break;
          Cell::Run({hidden - column, hidden, step.inputs + (row + r) * wide + column, step.before + at,
                     step.data.bias ? step.data.bias + column : nullptr,
                     step.data.last_cell ? step.data.last_cell + at : nullptr, step.after + at},
                    sums[r] + v);
        }
      }
    }
  }
}

using Panels = void (*)(const Step&, Range);
/*! By `Cell`. */
constexpr Panels kPanels[] = {RunPanels<LstmGates>, RunPanels<GruGates>, RunPanels<RnnGates<true>>,
                              RunPanels<RnnGates<false>>};
