// SPDX-License-Identifier: Apache-2.0
#include "library/weight_transform.h"

namespace uir::library {
namespace {

/*! The four sums of three numbers that lie `step` apart, as far apart from each other. */
void Spread(const double* from, double* to, int64_t step) {
  const double ends = from[0] + from[2 * step], middle = from[step];
  to[0] = from[0];
  to[step] = 0.5 * (ends + middle);
  to[2 * step] = 0.5 * (ends - middle);
  to[3 * step] = from[2 * step];
}

}  // namespace

std::vector<float> WinogradWindows(const float* windows, int64_t count) {
  std::vector<float> made(16 * count);
  for (int64_t window = 0; window < count; ++window) {
    double given[12], rows[16], all[16];  // of four columns, the last unused until the end
    for (int64_t at = 0; at < 9; ++at) given[at / 3 * 4 + at % 3] = windows[9 * window + at];
    for (int64_t column = 0; column < 3; ++column) Spread(given + column, rows + column, 4);
    for (int64_t row = 0; row < 4; ++row) Spread(rows + 4 * row, all + 4 * row, 1);
    for (int64_t at = 0; at < 16; ++at) made[16 * window + at] = static_cast<float>(all[at]);
  }
  return made;
}

}  // namespace uir::library
