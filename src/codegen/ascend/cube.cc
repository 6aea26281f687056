// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/cube.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"
#include "codegen/ascend/api.h"
#include "codegen/ascend/handshake.h"

namespace uir::codegen::ascend {

namespace {

/*! \brief A fractal: 16 rows of 32 bytes; the smallest piece that the cube loads. */
constexpr int64_t kFractalRows = 16, kFractalBytes = 512;
/*! \brief Limits of one instruction: strides and sizes of an ND2NZ copy, in elements. */
constexpr int64_t kLongestStride = 65535, kLongestMatrix = 16384, kMostMatrices = 4095;

/*! \brief Memories of the cube core: where tensors lie, what the planner of syncs calls it, its size in the hardware.
 */
struct Memory {
  const char* position;
  const char* region;
  const char* figure;
};
const Memory kMemories[] = {
    {"A1", "l1", "l1_bytes"}, {"A2", "l0a", "l0a_bytes"}, {"B2", "l0b", "l0b_bytes"}, {"CO1", "l0c", "l0c_bytes"}};

pipes::Region Bytes(const std::string& memory, const Affine& begin, int64_t bytes, bool write) {
  pipes::Region region;
  region.memory = memory;
  region.begin = begin;
  region.bytes = bytes;
  region.write = write;
  return region;
}

std::string Number(int64_t value) { return std::to_string(value); }

/*! \brief Lines for all indices below count: `line` of the index's text. */
template <typename Line>
std::vector<std::string> ForEach(int64_t count, const std::string& index, Line&& line) {
  if (count == 1) return {line("0")};
  return Looped(index, "0", Number(count), {line(index)});
}

std::string Index(const std::string& tensor, const std::string& offset) {
  return offset.empty() || offset == "0" ? tensor : tensor + "[" + offset + "]";
}

}  // namespace

/*! \brief An operand in global memory. */
struct Cube::Factor {
  Tile tile;
  bool left = true;
  /*! \brief Whether the contracted side runs along the rows of memory: then fractals are turned on their way to L0. */
  bool turned = false;
  /*! \brief Elements from row to row of memory. */
  int64_t pitch = 0;
  /*! \brief Length of the side that is not contracted. */
  int64_t side = 0;
  /*! \brief Whether the vector core writes it. */
  bool staged = false;

  /*! \brief Rows of memory that lie together in L1: two fractals below each other make a square of bytes. */
  int64_t Group() const { return turned && tile.bytes == 1 ? 2 * kFractalRows : kFractalRows; }
  const char* memory() const { return left ? "A2" : "B2"; }
  const char* region() const { return left ? "l0a" : "l0b"; }
  const char* name() const { return left ? "a" : "b"; }
};

struct Cube::Sizes {
  int64_t m = 0, n = 0, k = 0, chunk = 0, bytes = 0;
  std::string type, sums;
  int64_t Columns(int64_t length) const { return length * bytes / 32; }
  int64_t Fractal() const { return kFractalBytes / bytes; }
};

Cube::Cube(Emitter* e) : e_(e) {
  const HardwareModel& hardware = e->plan().graph()->hardware;
  for (const Memory& memory : kMemories) {
    limits_[memory.position] = hardware->figures.at(memory.figure).cast<int64_t>();
    used_[memory.position] = 0;
    buffers_[memory.position] = e->Fresh(memory.region);
  }
}

std::vector<CubeBuffer> Cube::Buffers() const {
  std::vector<CubeBuffer> buffers;
  for (const Memory& memory : kMemories) {
    buffers.push_back({memory.position, buffers_.at(memory.position), used_.at(memory.position)});
  }
  return buffers;
}

std::string Cube::Tensor(const std::string& buffer, const std::string& hint, const std::string& type, int64_t begin,
                         int64_t size, int64_t element) {
  used_[buffer] = std::max(used_[buffer], begin + size * element);
  if (used_[buffer] > limits_[buffer]) {
    e_->LacksRoom("The tiles of a product do not fit the cube core.", {buffer, used_[buffer], limits_[buffer]},
                  Number(used_[buffer]) + " bytes of " + buffer, Number(limits_[buffer]) + " bytes");
  }
  for (const CubeTensor& known : tensors_) {
    if (known.buffer == buffers_[buffer] && known.type == type && known.begin == begin && known.size == size) {
      return known.name;
    }
  }
  tensors_.push_back({buffers_[buffer], e_->Fresh(hint), type, begin, size});
  return tensors_.back().name;
}

Cube::Factor Cube::FactorOf(const ISlice& slice, bool left) {
  Factor factor;
  factor.tile = e_->TileOf(slice);
  factor.left = left;
  bool by_rows = slice->col_stride == 1;
  factor.turned = left != by_rows;
  factor.pitch = by_rows ? slice->row_stride : slice->col_stride;
  factor.side = left ? slice->rows : slice->cols;
  factor.staged = slice->pointer->role != "in";
  if (!by_rows && slice->row_stride != 1) {
    e_->Refuse("Neither rows nor columns of an operand lie together.", "one stride of 1");
  }
  return factor;
}

Cube::Sizes Cube::SizesOf(const Product& product) {
  const ISlice &left = product.iop->sources[0], &right = product.iop->sources[1];
  Sizes sizes;
  sizes.m = left->rows;
  sizes.k = left->cols;
  sizes.n = right->cols;
  sizes.type = TypeOf(std::string(left->pointer->dtype), e_->where()).stored;
  sizes.sums = TypeOf(std::string(product.iop->targets[0]->pointer->dtype), e_->where()).stored;
  sizes.bytes = BytesOf(std::string(left->pointer->dtype));
  int64_t unit = std::max<int64_t>(kFractalRows, 32 / sizes.bytes), widest = std::max(sizes.m, sizes.n);
  int64_t room = std::min({limits_["A2"] / sizes.m, limits_["B2"] / sizes.n, limits_["A1"] / (sizes.m + sizes.n)});
  sizes.chunk = std::min(sizes.k, room / 2 / sizes.bytes / unit * unit);
  std::string product_text = "The cube core cannot take a product of " + Number(sizes.m) + " x " + Number(sizes.k) +
                             " by " + Number(sizes.k) + " x " + Number(sizes.n) + " elements of " + sizes.type + ".";
  if (sizes.m % kFractalRows || sizes.n % kFractalRows || sizes.k % unit) {
    e_->Refuse(product_text,
               "rows and columns that are multiples of " + Number(kFractalRows) + ", a length of " + Number(unit));
  }
  if (sizes.chunk == 0) {
    e_->LacksRoom(product_text, {"L0A", 2 * widest * unit * sizes.bytes, limits_["A2"]},
                  "two places of " + Number(widest * unit * sizes.bytes) + " bytes for each operand",
                  Number(limits_["A2"]) + " bytes of L0A and of L0B");
  }
  return sizes;
}

void Cube::Multiply(const Product& product) {
  Sizes sizes = SizesOf(product);
  Factor left = FactorOf(product.iop->sources[0], true), right = FactorOf(product.iop->sources[1], false);
  int64_t chunks = CeilDiv(sizes.k, sizes.chunk), rounds = chunks;
  Affine round = Affine::Constant(0);
  std::string first;
  for (const Loop& loop : product.carrying) {
    std::string var(loop->var);
    round = round.Scale(loop->extent) + Affine::Var(var);
    rounds *= loop->extent;
    first += (first.empty() ? "" : " && ") + e_->Text(Affine::Var(var)) + " == 0";
  }
  int64_t sums_at = used_["CO1"];
  for (const auto& [iop, at] : sums_at_) {
    if (iop == product.iop.get()) sums_at = at;
  }
  sums_at_.emplace_back(product.iop.get(), sums_at);
  std::string sums = Tensor("CO1", "sums", sizes.sums, sums_at, sizes.m * sizes.n, 4);
  // The vector core has waited for the last result before it hands over what comes after it (CloseProduct). What it
  // does not write is read before, and multiplied where that is all: meanwhile the vector core computes.
  bool waits = product.carrying.empty() || product.staged;
  auto wait = [&] {
    if (waits) e_->Do("S", {WaitLine(kReady)}, {}, true, {"FIX"});
    waits = false;
  };
  for (int64_t number = 0; number < chunks; ++number) {
    int64_t at = number * sizes.chunk, length = std::min(sizes.chunk, sizes.k - at);
    Affine place = rounds == 1 ? Affine::Constant(0) : (round.Scale(chunks) + Affine::Constant(number)).Mod(2);
    for (bool staged : {false, true}) {
      if (staged && product.staged) wait();
      for (const Factor* factor : {&left, &right}) {
        if (factor->staged == staged) Fetch(*factor, sizes, at, length, place);
      }
    }
    if (number + 1 == chunks && product.staged && !product.carrying.empty()) e_->Plain(SetLine("MTE2", kTaken));
    Load(left, sizes, length, place);
    Load(right, sizes, length, place);
    std::string initial = number > 0 ? "false" : first.empty() ? "true" : first;
    std::string params =
        e_->Call("MmadParams", "struct", {}, {Number(sizes.m), Number(sizes.n), Number(length), "0", "false", initial});
    int64_t of_a = sizes.m * sizes.chunk * sizes.bytes, of_b = sizes.n * sizes.chunk * sizes.bytes;
    e_->Do("M",
           e_->Call("Mmad", "plain", {sizes.sums, sizes.type},
                    {sums, Operand(left, sizes, place), Operand(right, sizes, place), params}) +
               ";",
           {Bytes("l0a", place.Scale(of_a), sizes.m * length * sizes.bytes, false),
            Bytes("l0b", place.Scale(of_b), sizes.n * length * sizes.bytes, false),
            Bytes("l0c", Affine::Constant(sums_at), sizes.m * sizes.n * 4, true)});
  }
  wait();
  if (product.carrying.empty()) Store(product);
}

void Cube::Store(const Product& product) {
  Sizes sizes = SizesOf(product);
  int64_t sums_at = 0;
  for (const auto& [iop, at] : sums_at_) {
    if (iop == product.iop.get()) sums_at = at;
  }
  std::string sums = Tensor("CO1", "sums", sizes.sums, sums_at, sizes.m * sizes.n, 4);
  Tile target = e_->TileOf(product.iop->targets[0]);
  if (product.guarded) e_->Plain(WaitLine(kFree));
  std::string params =
      e_->Call("FixpipeParamsV220", "struct", {},
               {Number(sizes.n), Number(sizes.m), Number(sizes.m), Number(target.row_stride), "false"});
  e_->Do("FIX", e_->Call("Fixpipe", "plain", {sizes.sums}, {e_->At(target), sums, params}) + ";",
         {Bytes("l0c", Affine::Constant(sums_at), sizes.m * sizes.n * 4, false)});
  e_->Plain(SetLine("FIX", kDone));
}

std::string Cube::InL1(const Factor& factor, const Sizes& sizes, const Affine& place, const std::string& more) {
  // the right operand lies behind both places of the left one
  int64_t of_left = 2 * sizes.m * sizes.chunk, of_one = factor.side * sizes.chunk;
  std::string tensor = Tensor("A1", std::string("l1_") + factor.name(), sizes.type,
                              factor.left ? 0 : of_left * sizes.bytes, 2 * of_one, sizes.bytes);
  return Index(tensor, tiles::PlusText(e_->Text(place.Scale(of_one)), more));
}

Affine Cube::L1Byte(const Factor& factor, const Sizes& sizes, const Affine& place) const {
  int64_t begin = factor.left ? 0 : 2 * sizes.m * sizes.chunk * sizes.bytes;
  return place.Scale(factor.side * sizes.chunk * sizes.bytes) + Affine::Constant(begin);
}

std::string Cube::Operand(const Factor& factor, const Sizes& sizes, const Affine& place, const std::string& more) {
  int64_t of_one = factor.side * sizes.chunk;
  std::string tensor = Tensor(factor.memory(), factor.region(), sizes.type, 0, 2 * of_one, sizes.bytes);
  return Index(tensor, tiles::PlusText(e_->Text(place.Scale(of_one)), more));
}

void Cube::Fetch(const Factor& factor, const Sizes& sizes, int64_t at, int64_t length, const Affine& place) {
  int64_t rows = factor.turned ? length : factor.side, cols = factor.turned ? factor.side : length;
  int64_t skipped = factor.turned ? at * factor.pitch : at, group = factor.Group(), groups = rows / group;
  auto params = [&](int64_t matrices, int64_t source, int64_t target) {
    return e_->Call("Nd2NzParams", "struct", {},
                    {Number(matrices), Number(group), Number(cols), Number(source), Number(factor.pitch), Number(group),
                     "1", Number(target)});
  };
  auto copy = [&](const std::string& to, const std::string& from, const std::string& how) {
    return e_->Call("DataCopy", "load.nz", {sizes.type}, {to, from, how}) + ";";
  };
  std::string skip = skipped == 0 ? "" : Number(skipped);
  std::vector<std::string> lines;
  bool fits = group * factor.pitch <= kLongestStride && group * cols <= kLongestMatrix && groups <= kMostMatrices;
  if (groups == 1 || fits) {
    bool one = groups == 1;
    lines = {copy(InL1(factor, sizes, place), e_->At(factor.tile, skip),
                  params(groups, one ? 0 : group * factor.pitch, one ? 0 : group * cols))};
  } else {
    lines = ForEach(groups, "i", [&](const std::string& i) {
      return copy(InL1(factor, sizes, place, TimesText(i, group * cols)),
                  e_->At(factor.tile, tiles::PlusText(skip, TimesText(i, group * factor.pitch))), params(1, 0, 0));
    });
  }
  e_->Do("MTE2", lines, {Bytes("l1", L1Byte(factor, sizes, place), rows * cols * sizes.bytes, true)});
}

void Cube::Load(const Factor& factor, const Sizes& sizes, int64_t length, const Affine& place) {
  // fractals along the side and along the contracted side
  int64_t across = factor.side / kFractalRows, along = sizes.Columns(length), one = sizes.Fractal();
  bool narrow = sizes.bytes == 1;
  std::string source = InL1(factor, sizes, place);
  auto plain = [&](const std::string& to, const std::string& start, int64_t repeats, int64_t stride, bool turn) {
    std::string params = e_->Call("LoadData2DParams", "struct", {},
                                  {start, Number(repeats), Number(stride), "0", "0", turn ? "true" : "false", "0"});
    return e_->Call("LoadData", "2d", {sizes.type}, {Operand(factor, sizes, place, to), source, params}) + ";";
  };
  auto square = [&](const std::string& to, const std::string& start, int64_t repeats, int64_t stride, int64_t gap,
                    int64_t inner_gap) {
    std::string params = e_->Call("LoadData2dTransposeParams", "struct", {},
                                  {start, Number(repeats), Number(stride), Number(gap), Number(inner_gap)});
    return e_->Call("LoadDataWithTranspose", "plain", {sizes.type},
                    {Operand(factor, sizes, place, to), source, params}) +
           ";";
  };
  // squares of 16 x 16 elements (32 x 32 of a byte each) are made of two fractals
  int64_t edge = narrow ? 32 : 16, squares_across = factor.side / edge, squares_along = length / edge;
  std::vector<std::string> lines;
  if (factor.left && factor.turned) {
    lines = sizes.bytes == 2 ? ForEach(across, "i",
                                       [&](const std::string& i) {
                                         return plain(TimesText(i, along * one), i, length / 16, across, true);
                                       })
                             : ForEach(squares_across, "i", [&](const std::string& i) {
                                 return square(TimesText(i, (narrow ? 2 : 1) * along * one), i, squares_along,
                                               squares_across, narrow ? 0 : 1, narrow ? along - 1 : 0);
                               });
  } else if (!factor.left && factor.turned && sizes.bytes != 2) {
    lines = ForEach(squares_along, "i", [&](const std::string& i) {
      return square(TimesText(i, (narrow ? 1 : 2) * across * one), TimesText(i, squares_across), squares_across, 1,
                    narrow ? 1 : 0, narrow ? 0 : across - 1);
    });
  } else if (!factor.left && !factor.turned) {
    lines = ForEach(along, "i",
                    [&](const std::string& i) { return plain(TimesText(i, across * one), i, across, along, false); });
  } else {
    // the order of L0 is that of L1
    int64_t outer = factor.left ? across : along, inner = factor.left ? along : across;
    bool whole = outer * inner <= kMostRepeats;
    lines = ForEach(whole ? 1 : outer, "i", [&](const std::string& i) {
      return plain(TimesText(i, inner * one), TimesText(i, inner), whole ? outer * inner : inner, 1, factor.turned);
    });
  }
  int64_t bytes = factor.side * length * sizes.bytes;
  e_->Do("MTE1", lines,
         {Bytes("l1", L1Byte(factor, sizes, place), bytes, false),
          Bytes(factor.region(), place.Scale(factor.side * sizes.chunk * sizes.bytes), bytes, true)});
}

}  // namespace uir::codegen::ascend
