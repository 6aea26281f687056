// SPDX-License-Identifier: Apache-2.0
#include "codegen/ascend/far_turns.h"

#include "codegen/ascend/api.h"
#include "codegen/ascend/scalar_unit.h"
#include "codegen/tiles/count.h"

namespace uir::codegen::ascend {

const char* const kRestOfTurns = "RestOfTurns";

namespace {

/*! \brief Biased exponent of 2^22. */
constexpr int kFar = 149;

// All in integers: of the scalar unit's functions of floats little is documented.
const char kText[] = R"(
// The bits of x - k pi times (-1)^k, or of x + pi / 2 likewise (quarter), for 2^22 <= |x| < infinity; by Payne and Hanek.
__aicore__ inline int32_t RestOfTurns(int32_t x, bool quarter) {
  // 1 / (4 pi)
  const uint64_t inverse[4] = {0x145f306dc9c882a5ULL, 0x3f84eafa3ea69bb8ULL, 0x1b6c52b327887208ULL, 0x3fca2c757bd778acULL};
  const uint32_t bits = static_cast<uint32_t>(x);
  const uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  const int32_t shift = static_cast<int32_t>((bits >> 23) & 255u) - 149, word = shift / 64, by = shift % 64;
  uint64_t high = inverse[word], low = inverse[word + 1];
  if (by > 0) {
    high = (high << by) | (low >> (64 - by));
    low = (low << by) | (inverse[word + 2] >> (64 - by));
  }
  // whole turns overflow
  uint64_t turns = mantissa * high + ((mantissa * (low >> 32) + ((mantissa * (low & 0xffffffffULL)) >> 32)) >> 32);
  bool negative = !quarter && (bits >> 31) != 0;
  if (quarter) turns += 1ULL << 62;
  // to the nearest half turn: odd ones change the sign
  turns += 1ULL << 62;
  if ((turns >> 63) != 0) negative = !negative;
  turns &= ~(1ULL << 63);
  uint64_t left = turns;
  if (left >= 1ULL << 62) {
    left -= 1ULL << 62;
  } else {
    left = (1ULL << 62) - left;
    negative = !negative;
  }
  // times pi 2^62, the upper half: in units of 2^-61
  const uint64_t a = left >> 32, b = left & 0xffffffffULL, c = 0xc90fdaa2ULL, d = 0x2168c235ULL;
  const uint64_t middle = ((b * d) >> 32) + (a * d & 0xffffffffULL) + (b * c & 0xffffffffULL);
  uint64_t angle = a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
  if (angle == 0) return 0;
  int32_t exponent = 127;
  while ((angle >> 61) == 0) {
    angle <<= 1;
    --exponent;
  }
  const uint64_t rounded = (angle >> 38) - 0x800000u + ((angle >> 37) & 1u);
  const uint32_t made = (static_cast<uint32_t>(exponent) << 23) + static_cast<uint32_t>(rounded);
  return static_cast<int32_t>(negative ? made | 0x80000000u : made);
}
)";

bool Asks(const IOp& iop) {
  if (iop->op != "unary" || iop->dtype == "fp16") return false;
  return iop->name == "sin" || iop->name == "cos" || iop->name == "tan";
}

}  // namespace

void PrintFarRest(Emitter& e, const std::string& mode, const FarTurns& turns, const Bound& rows, const Bound& cols) {
  Tile x = e.As(turns.x, "int32"), rest = e.As(turns.rest, "int32"), peak = turns.peak;
  peak.cols = kPeakPlace + 1;
  x.rows = rest.rows = rows.most();
  x.cols = rest.cols = cols.most();
  x.box = rest.box = {Bound::Of(0), Bound::Of(x.rows), Bound::Of(0), Bound::Of(x.cols)};
  const bool one = rows.Constant() && rows.most() == 1;
  const std::string row = one ? "0" : e.Fresh("r"), col = e.Fresh("c"), bits = e.Fresh("bits"),
                    exponent = e.Fresh("exponent");
  if (one) x.row_stride = rest.row_stride = 0;
  std::vector<std::string> lines = {
      "if (" + Member(e, peak, "GetValue", {OffsetText(e, peak, "0", std::to_string(kPeakPlace))}) +
      " >= " + Literal(kFar, "float") + ") {"};
  if (!one) lines.push_back("  for (int32_t " + row + " = 0; " + row + " < " + rows.text + "; ++" + row + ")");
  auto at = [&](const Tile& tile) { return OffsetText(e, tile, row, col); };
  lines.insert(lines.end(), {"  for (int32_t " + col + " = 0; " + col + " < " + cols.text + "; ++" + col + ") {",
                             "    const int32_t " + bits + " = " + Member(e, x, "GetValue", {at(x)}) + ", " + exponent +
                                 " = (" + bits + " >> 23) & 255;",
                             "    if (" + exponent + " >= " + std::to_string(kFar) + " && " + exponent + " < 255) " +
                                 Member(e, rest, "SetValue",
                                        {at(rest), std::string(kRestOfTurns) + "(" + bits + ", " +
                                                       (mode == "cos" ? "true" : "false") + ")"}) +
                                 ";",
                             "  }", "}"});
  Tile read = x, written = rest;
  if (one) read.row_stride = written.row_stride = cols.most();
  e.Do("S", lines, {Reads(peak), Reads(read), Reads(written), Writes(written)});
}

std::string RestOfTurns(const ffi::Array<IGraph>& graphs) {
  for (const IGraph& graph : graphs) {
    if (tiles::CountIOps(graph->body, Asks) > 0) return kText;
  }
  return "";
}

}  // namespace uir::codegen::ascend
