// SPDX-License-Identifier: Apache-2.0
// Products: floats by the matrix unit, in fp32; other dtypes by scalar code.
//
// The unit also multiplies half, but no public text shows how half weights lie in WRAM: they are widened, which is
// exact.
#include <algorithm>
#include <utility>

#include "base/rounding.h"
#include "codegen/attributes.h"
#include "codegen/bang/api.h"
#include "codegen/bang/elementwise.h"
#include "codegen/bang/functions_int.h"
#include "codegen/bang/ops.h"
#include "codegen/bang/run.h"
#include "codegen/bang/tile_ops.h"

namespace uir::codegen::bang {

namespace {

/*! \brief What the matrix unit takes: columns of the result, and bytes of the contracted side. */
constexpr int64_t kColumns = 64;
constexpr int64_t kInnerBytes = 128;

/*! \brief Bytes that are left to what stores the result, and to the rounding of buffers. */
constexpr int64_t kSlackBytes = 8192;

/*! \brief The pieces of a product: at most so many rows of the result, of the contracted side, of columns. */
struct Pieces {
  int64_t rows = 0, inner = 0, cols = 0;
};

/*! \brief Sizes of a product whose sides are padded to what the matrix unit takes. */
struct Product {
  std::string dtype;  // of the factors
  int64_t bytes = 0;
  int64_t rows = 0, inner = 0, cols = 0;
  bool lies = false;  // whether whole rows of the left operand are taken as they lie
  bool sums = false;  // whether partial sums need a buffer: the result is narrower than they are

  int64_t Steps(const Pieces& p) const { return CeilDiv(inner, p.inner); }
  /*! \brief Whether left operands are copied to a buffer. */
  bool Copies(const Pieces& p) const { return !lies || Steps(p) > 1; }
  /*! \brief Bytes of the buffers in NRAM. */
  int64_t Need(const Pieces& p) const {
    int64_t left = Copies(p) ? p.rows * p.inner * bytes : 0, right = 2 * p.inner * p.cols * bytes,
            made = p.rows * p.cols * 4;
    return left + right + made + (sums && Steps(p) > 1 ? rows * p.cols * 4 : 0);
  }
  int64_t Weights(const Pieces& p) const { return p.inner * p.cols * bytes; }
  /*! \brief Elements copied, padded, turned and added: right operands once, left ones for each piece of columns. */
  double Cost(const Pieces& p) const {
    double columns = static_cast<double>(CeilDiv(cols, p.cols)), all = static_cast<double>(rows);
    double calls = columns * static_cast<double>(Steps(p)) * static_cast<double>(CeilDiv(rows, p.rows));
    return columns * all * static_cast<double>(inner) +
           static_cast<double>(Steps(p)) * all * static_cast<double>(cols) + 4096 * calls;
  }
};

/*! \brief Half of a side and half of that, in whole units, down to one. */
std::vector<int64_t> Sizes(int64_t side, int64_t unit) {
  std::vector<int64_t> sizes = {side};
  while (sizes.back() > unit) sizes.push_back(RoundUp((sizes.back() + 1) / 2, unit));
  return sizes;
}

/*! \brief The largest pieces for which NRAM and WRAM have room; refuses where not even the smallest have. */
Pieces Cut(const Emitter& e, const Product& product) {
  int64_t inner_unit = kInnerBytes / product.bytes, wram = e.Figure("wram_bytes"), nram = e.FreeBytes() - kSlackBytes;
  Pieces best, least{1, inner_unit, kColumns};
  double cost = 0;
  for (int64_t cols : Sizes(product.cols, kColumns)) {
    for (int64_t inner : Sizes(product.inner, inner_unit)) {
      for (int64_t rows : Sizes(product.rows, 1)) {
        Pieces p{rows, inner, cols};
        if (product.Need(p) > nram || product.Weights(p) > wram) continue;
        if (best.rows == 0 || product.Cost(p) < cost) {
          best = p;
          cost = product.Cost(p);
        }
      }
    }
  }
  if (best.rows == 0) {
    e.LacksRoom("NRAM has no room for the smallest pieces of a product.",
                {"NRAM", product.Need(least), std::max<int64_t>(nram, 0)},
                std::to_string(product.Need(least)) + " bytes",
                std::to_string(std::max<int64_t>(nram, 0)) + " bytes beside what is alive there");
  }
  return best;
}

/*! \brief What lies of a box in a piece, counted from the piece's own corner. */
Box Within(Emitter& e, const Box& box, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  Bound down = Bound::Of(row), right = Bound::Of(col);
  Box moved =
      row || col ? Box{box.row_begin - down, box.row_end - down, box.col_begin - right, box.col_end - right} : box;
  return Both(e, moved, Box::Of(rows, cols));
}

/*! \brief A tile in the dtype of the factors, zero outside of a box, at the start of a larger dense buffer. */
void Pad(Emitter& e, const Tile& work, const Tile& from, const Box& box) {
  if (work.rows > from.rows || work.cols > from.cols || !box.Whole(from.rows, from.cols)) {
    FillTile(e, work, ffi::Any(0.0));
  }
  Tile part = work.Part(0, 0, from.rows, from.cols);
  Emitter::Scratch scratch(&e);
  if (from.dtype == work.dtype) {
    Copy(e, part, from, box);
  } else {
    ConvertTile(e, part, from, box, true);
  }
}

/*! \brief Whether the matrix unit, or what turns operands, takes a tile as it lies. */
bool AsItLies(const Tile& tile, const Box& box, const std::string& dtype, int64_t rows, int64_t cols) {
  return tile.dtype == dtype && tile.Dense() && tile.rows == rows && tile.cols == cols && box.Whole(rows, cols);
}

/*! \brief The first rows and columns of a work buffer, as a dense tile of their own. */
Tile First(const Tile& work, int64_t rows, int64_t cols) {
  Tile tile = work;
  tile.rows = rows;
  tile.cols = tile.row_stride = cols;
  tile.box = Box::Of(rows, cols);
  return tile;
}

/*! \brief The same elements with rows for columns. */
Tile Turned(const Tile& tile) {
  Tile turned = tile;
  std::swap(turned.rows, turned.cols);
  std::swap(turned.row_stride, turned.col_stride);
  turned.box = tiles::Turned(tile.box);
  return turned;
}

/*! \brief A product by the matrix unit, in pieces that fit. */
class Multiplication {
 public:
  Multiplication(Emitter& e, const Tile& t, const Tile& a, const Tile& b, bool accumulate)
      : e_(e), t_(t), a_(a), b_(b), accumulate_(accumulate) {
    product_.dtype = "fp32";
    type_ = ElementType(product_.dtype);
    product_.bytes = TypeOf(product_.dtype).bytes;
    product_.rows = t.rows;
    product_.inner = RoundUp(a.cols, kInnerBytes / product_.bytes);
    product_.cols = RoundUp(b.cols, kColumns);
    product_.lies = AsItLies(a, a.box, product_.dtype, a.rows, product_.inner);
    product_.sums = t.dtype != "fp32";
    pieces_ = Cut(e, product_);
  }

  void Emit() {
    const Pieces& p = pieces_;
    whole_ = product_.Steps(p) == 1;
    if (product_.Copies(p)) left_ = e_.Work(product_.dtype, p.rows, p.inner);
    right_ = e_.Work(product_.dtype, p.inner, p.cols);
    turned_ = e_.Work(product_.dtype, p.cols, p.inner);
    weights_ = e_.Weights(product_.dtype, p.cols, p.inner);
    straight_ = IsStraight();
    if (!straight_) made_ = e_.Work("fp32", p.rows, p.cols);
    if (product_.sums && !whole_) sums_ = e_.Work("fp32", product_.rows, p.cols);
    for (int64_t col = 0; col < b_.cols; col += p.cols) {
      for (int64_t k = 0; k < a_.cols; k += p.inner) {
        int64_t inner = std::min(p.inner, product_.inner - k), cols = std::min(p.cols, product_.cols - col);
        Tile weights = Prepare(k, col, inner, cols);
        for (int64_t row = 0; row < t_.rows; row += p.rows) {
          Tile made = Multiply(weights, row, k, inner, cols);
          if (!straight_) Store(made, row, col, k == 0, k + p.inner >= a_.cols);
        }
      }
    }
  }

 private:
  /*! \brief A piece of the right operand, as the matrix unit wants it in WRAM: [columns, contracted side]. */
  Tile Prepare(int64_t k, int64_t col, int64_t inner, int64_t cols) {
    Tile from = b_.Part(k, col, std::min(inner, b_.rows - k), std::min(cols, b_.cols - col));
    // what lies outside of the box of the left operand's columns counts as zero, on both sides; a core whose result has
    // no valid rows may have no valid right operand either
    Box left = b_.box;
    left.row_begin = a_.box.col_begin;
    left.row_end = a_.box.col_end;
    Box box = Within(e_, b_.box.AllRows(b_.rows) ? left : Both(e_, b_.box, left), k, col, from.rows, from.cols);
    Emitter::Scratch scratch(&e_);
    Tile y = First(right_, inner, cols), turned = First(turned_, cols, inner), shaped = First(right_, cols, inner);
    if (from.row_stride == 1 && from.cols > 1) {
      // its columns are rows already
      Tile rows = Turned(from);
      Box around = tiles::Turned(box);
      if (AsItLies(rows, around, product_.dtype, cols, inner)) {
        turned = rows;
      } else {
        Pad(e_, turned, rows, around);
      }
    } else if (AsItLies(from, box, product_.dtype, inner, cols)) {
      TransposeTile(e_, turned, from);
    } else {
      Pad(e_, y, from, box);
      TransposeTile(e_, turned, y);
    }
    std::string n = std::to_string(cols), k_text = std::to_string(inner);
    Call("__bang_reshape_filter", {e_.At(shaped), e_.At(turned), n, "1", "1", k_text}, {Reads(turned), Writes(shaped)});
    Tile weights = First(weights_, cols, inner);
    Copy(e_, weights, shaped, Box::Of(cols, inner));
    return weights;
  }

  /*! \brief Whether the unit leaves the result where it belongs: of one piece, which is added to nothing. */
  bool IsStraight() const {
    const Pieces& p = pieces_;
    bool one = p.rows >= t_.rows && p.cols >= b_.cols && whole_ && !accumulate_;
    return one && AsItLies(t_, t_.box, "fp32", t_.rows, product_.cols) && t_.memory == kNram &&
           !tiles::ShareBytes(t_, a_) && !tiles::ShareBytes(t_, b_);
  }

  Tile Multiply(const Tile& weights, int64_t row, int64_t k, int64_t inner, int64_t cols) {
    Tile from = a_.Part(row, k, std::min(pieces_.rows, a_.rows - row), std::min(inner, a_.cols - k));
    Box box = Within(e_, a_.box, row, k, from.rows, from.cols);
    Tile x = from, made = straight_ ? t_ : First(made_, from.rows, cols);
    if (product_.Copies(pieces_)) {
      x = First(left_, from.rows, inner);
      Pad(e_, x, from, box);
    }
    Call(
        "__bang_matmul",
        {e_.At(made), e_.At(x), e_.At(weights), std::to_string(from.rows), std::to_string(inner), std::to_string(cols)},
        {Reads(x), Reads(weights), Writes(made)});
    return made;
  }

  /*! \brief Adds a piece's product up, and stores the last sum. */
  void Store(const Tile& made, int64_t row, int64_t col, bool first, bool last) {
    int64_t cols = std::min(made.cols, t_.cols - col);
    Tile product = made.Part(0, 0, made.rows, cols), to = t_.Part(row, col, made.rows, cols);
    Box box = Within(e_, t_.box, row, col, made.rows, cols);
    Program p(e_.platform());
    Value sum = p.Input(0, "fp32");
    std::vector<Tile> sources = {product};
    auto add = [&](const Tile& more) {
      sources.push_back(more);
      sum = p.Add(sum, p.Float(p.Input(static_cast<int>(sources.size()) - 1, more.dtype)));
    };
    Tile target = to;
    if (product_.sums && !whole_) {
      Tile sums = First(sums_, product_.rows, made.cols).Part(row, 0, made.rows, cols);
      if (!first) add(sums);
      if (last && accumulate_) add(to);
      if (!last) target = sums;
    } else if (accumulate_ || !first) {
      add(to);
    }
    if (target.dtype != "fp32") {
      sum = p.Stored(sum, target.dtype);
    } else if (sources.size() == 1) {
      sum = p.Copy(sum);
    }
    sources.insert(sources.begin(), target);
    Emitter::Scratch scratch(&e_);
    RunOnTiles(e_, p, sum, sources, box, true);
  }

  void Call(const std::string& name, const std::vector<std::string>& arguments,
            const std::vector<pipes::Region>& regions) {
    e_.Do("COMPUTE", Table().Call(e_.where(), name, "plain", {type_}, arguments, e_.platform()) + ";", regions);
  }

  Emitter& e_;
  const Tile &t_, &a_, &b_;
  bool accumulate_, whole_ = true, straight_ = false;
  std::string type_;
  Product product_;
  Pieces pieces_;
  Tile left_, right_, turned_, weights_, made_, sums_;
};

void Multiply(Emitter& e, const Tile& t, const Tile& a, const Tile& b, bool accumulate) {
  Multiplication(e, t, a, b, accumulate).Emit();
}

/*! \brief Whole numbers, one product after the other. */
void MultiplyWhole(Emitter& e, const Tile& t, const Tile& a, const Tile& b, bool accumulate) {
  std::string i = e.Fresh("i"), j = e.Fresh("j"), k = e.Fresh("k"), sum = e.Fresh("sum");
  const ScalarType& type = TypeOf(t.dtype);
  std::string wide = type.bytes == 8 ? "uint64_t" : "uint32_t", to = e.Element(t, i, j);
  std::vector<std::string> lines = {wide + " " + sum + " = " + (accumulate ? "(" + wide + ")" + to : "0") + ";"};
  std::vector<std::string> step = {sum + " += (" + wide + ")" + e.Element(a, i, k) + " * (" + wide + ")" +
                                   e.Element(b, k, j) + ";"};
  for (std::string& line : OverCols(k, a.box, step)) lines.push_back(std::move(line));
  lines.push_back(to + " = (" + std::string(type.stored) + ")" + sum + ";");
  e.Note("scalar code, some tens of cycles for a product");
  std::vector<pipes::Region> regions = {Writes(t), Reads(a), Reads(b)};
  if (accumulate) regions.push_back(Reads(t));
  e.Do("S", OverBox(i, j, t.box, lines), regions);
}

}  // namespace

void EmitContract(Emitter& e, const IOp& iop) {
  Tile t = e.TileOf(iop->targets[0]), a = e.TileOf(iop->sources[0]), b = e.TileOf(iop->sources[1]);
  (IsWhole(t.dtype) ? MultiplyWhole : Multiply)(e, t, a, b, Accumulates(iop));
}

}  // namespace uir::codegen::bang
