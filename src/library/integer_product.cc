// SPDX-License-Identifier: Apache-2.0
// Products of bytes: rows of windows in 16 bits, blocks of them by panels of the weight, on the threads of the pool.

#include "library/integer_product.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_WIDTHS 1
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/rounding.h"
#include "library/cpu_features.h"
#include "library/parallel.h"

#define UIR_INLINE inline __attribute__((always_inline))

namespace uir::library {
namespace {

/*! Bytes of the rows that are multiplied with one panel after the other: they stay in the second cache. */
constexpr int64_t kBlockBytes = 96 << 10;
/*! What writing a number of a row costs, in products. */
constexpr double kWiden = 2.0;

/*! What becomes of sums. */
struct Ending {
  IntegerResult result;
  int64_t columns;
  const int32_t* start;
  const float *factors, *terms;
  float low, high;
  int32_t zero;
  char* out;
};

using RowsFunction = void (*)(const int16_t*, int64_t length, const char* panel, const Ending&, int64_t row,
                              int64_t column);

struct RowsFunctions {
  int rows;
  RowsFunction run[2];  // numbers of 8 bits, of 16
};

#ifdef UIR_WIDTHS
#define UIR_VECTORS 512
#define UIR_DOTS 1
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,fma")
namespace vnni {
constexpr int kLanes = 16;
#include "library/integer_tile.h"
constexpr RowsFunctions kRows[] = {FunctionsOf<1>(), FunctionsOf<2>(), FunctionsOf<4>(), FunctionsOf<8>(),
                                   FunctionsOf<12>()};
}  // namespace vnni
#pragma GCC pop_options
#undef UIR_DOTS
#define UIR_DOTS 0
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")
namespace avx512 {
constexpr int kLanes = 16;
#include "library/integer_tile.h"
constexpr RowsFunctions kRows[] = {FunctionsOf<1>(), FunctionsOf<2>(), FunctionsOf<4>(), FunctionsOf<8>(),
                                   FunctionsOf<12>()};
}  // namespace avx512
#pragma GCC pop_options
#undef UIR_VECTORS
#define UIR_VECTORS 256
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kLanes = 8;
#include "library/integer_tile.h"
constexpr RowsFunctions kRows[] = {FunctionsOf<1>(), FunctionsOf<2>(), FunctionsOf<3>(),
                                   FunctionsOf<4>(), FunctionsOf<5>(), FunctionsOf<6>()};
}  // namespace avx2
#pragma GCC pop_options
#undef UIR_VECTORS
#undef UIR_DOTS
#endif
#define UIR_VECTORS 0
#define UIR_DOTS 0
namespace any {
constexpr int kLanes = 4;
#include "library/integer_tile.h"
constexpr RowsFunctions kRows[] = {FunctionsOf<1>(), FunctionsOf<2>()};
}  // namespace any

/*! What this CPU computes with. */
struct Kernels {
  const char* name;
  std::vector<RowsFunctions> rows;
  void (*widen[2])(const char*, int64_t, int16_t, int16_t*);  // bytes without a sign, with one

  static const std::vector<Kernels>& All();
};

template <typename Byte, void (*kWidenBytes)(const Byte*, int64_t, int16_t, int16_t*)>
void WidenChars(const char* from, int64_t count, int16_t zero, int16_t* to) {
  kWidenBytes(reinterpret_cast<const Byte*>(from), count, zero, to);
}

template <size_t kCount>
std::vector<RowsFunctions> Listed(const RowsFunctions (&table)[kCount]) {
  return {table, table + kCount};
}

#define UIR_KERNELS(space)                                                                 \
  Kernels {                                                                                \
    #space, Listed(space::kRows), {                                                        \
      WidenChars<uint8_t, space::Widen<uint8_t>>, WidenChars<int8_t, space::Widen<int8_t>> \
    }                                                                                      \
  }

const std::vector<Kernels>& Kernels::All() {
  static const std::vector<Kernels>* all = [] {
    auto* found = new std::vector<Kernels>();
#ifdef UIR_WIDTHS
    if (HasAvx512()) {
      if (__builtin_cpu_supports("avx512vnni")) found->push_back(UIR_KERNELS(vnni));
      found->push_back(UIR_KERNELS(avx512));
    }
    if (HasAvx2()) found->push_back(UIR_KERNELS(avx2));
#endif
    found->push_back(UIR_KERNELS(any));
    return found;
  }();
  return *all;
}

/*! Which of `Kernels::All` computes. */
std::atomic<int> chosen{0};

int64_t PaddedColumns(const IntegerAttrs& attrs) { return RoundUp(attrs.o, kIntegerColumns); }

int64_t PanelBytes(const IntegerAttrs& attrs) { return RoundUp(attrs.k(), 2) * kIntegerColumns * (attrs.wide ? 2 : 1); }

/*! Windows of an image as rows. */
class Windows {
 public:
  Windows(const IntegerAttrs& attrs, const IntegerData& data, const Kernels& kernels)
      : attrs_(attrs), x_(data.x), zero_(static_cast<int16_t>(data.zero)), widen_(kernels.widen[data.has_sign]) {}

  /*! The window of a pixel of the result, what is outside of the image as zeros. */
  void Row(int64_t row, int64_t length, int16_t* to) const {
    const IntegerAttrs& a = attrs_;
    to[length - 1] = 0;  // where their number is odd
    const int64_t x = row % a.ow * a.stride[1] - a.padding[1], rest = row / a.ow;
    const int64_t y = rest % a.oh * a.stride[0] - a.padding[0], image = rest / a.oh;
    for (int64_t i = 0; i < a.kh; ++i, to += a.kw * a.c) {
      const int64_t line = y + i * a.dilation[0];
      if (line < 0 || line >= a.h) {
        std::fill(to, to + a.kw * a.c, int16_t{0});
        continue;
      }
      const char* from = x_ + (image * a.h + line) * a.w * a.c;
      if (a.dilation[1] == 1) {
        const int64_t begin = std::min(a.kw, std::max<int64_t>(0, -x));
        const int64_t end = std::max(begin, std::min(a.kw, a.w - x));
        std::fill(to, to + begin * a.c, int16_t{0});
        if (end > begin) widen_(from + (x + begin) * a.c, (end - begin) * a.c, zero_, to + begin * a.c);
        std::fill(to + end * a.c, to + a.kw * a.c, int16_t{0});
        continue;
      }
      for (int64_t j = 0; j < a.kw; ++j) {
        const int64_t at = x + j * a.dilation[1];
        if (at < 0 || at >= a.w) {
          std::fill(to + j * a.c, to + (j + 1) * a.c, int16_t{0});
        } else {
          widen_(from + at * a.c, a.c, zero_, to + j * a.c);
        }
      }
    }
  }

 private:
  const IntegerAttrs& attrs_;
  const char* x_;
  int16_t zero_;
  void (*widen_)(const char*, int64_t, int16_t, int16_t*);
};

Ending EndingOf(const IntegerAttrs& attrs, const IntegerData& data) {
  const int64_t columns = PaddedColumns(attrs);
  const char* tail = data.weight + columns / kIntegerColumns * PanelBytes(attrs);
  Ending ending{data.result, attrs.o, reinterpret_cast<const int32_t*>(tail), nullptr, nullptr,
                0.0f,        0.0f,    static_cast<int32_t>(attrs.out_zero),   data.out};
  ending.factors = reinterpret_cast<const float*>(ending.start + columns);
  ending.terms = ending.factors + columns;
  ending.low = ending.terms[columns], ending.high = ending.terms[columns + 1];
  return ending;
}

/*! Rows and panels of one task. */
void RunPart(const IntegerAttrs& attrs, const IntegerData& data, const Kernels& kernels, Range rows, Range panels) {
  const int64_t length = RoundUp(attrs.k(), 2), most = kernels.rows.back().rows;
  const int64_t fit = kBlockBytes / (length * 2) / most * most;
  const int64_t block = std::max(most, std::min(RoundUp(rows.size, most), fit));
  const Ending ending = EndingOf(attrs, data);
  const Windows windows(attrs, data, kernels);
  static thread_local std::vector<int16_t> buffer;
  buffer.resize(std::max<size_t>(buffer.size(), block * length));
  for (int64_t first = rows.begin; first < rows.begin + rows.size; first += block) {
    const int64_t count = std::min(block, rows.begin + rows.size - first);
    for (int64_t r = 0; r < count; ++r) windows.Row(first + r, length, buffer.data() + r * length);
    for (int64_t panel = panels.begin; panel < panels.begin + panels.size; ++panel) {
      const char* weight = data.weight + panel * PanelBytes(attrs);
      size_t tile = kernels.rows.size() - 1;
      for (int64_t r = 0; r < count;) {
        while (kernels.rows[tile].rows > count - r) --tile;
        kernels.rows[tile].run[attrs.wide](buffer.data() + r * length, length, weight, ending, first + r,
                                           panel * kIntegerColumns);
        r += kernels.rows[tile].rows;
      }
    }
  }
}

}  // namespace

int64_t IntegerBytes(const IntegerAttrs& attrs) {
  const int64_t columns = PaddedColumns(attrs);
  return columns / kIntegerColumns * PanelBytes(attrs) + 12 * columns + 8;
}

void RunIntegerProduct(const IntegerAttrs& attrs, const IntegerData& data, int threads) {
  const Kernels& kernels = Kernels::All()[chosen];
  const int64_t rows = attrs.rows(), panels = PaddedColumns(attrs) / kIntegerColumns;
  const int64_t most = kernels.rows.back().rows;
  const double k = static_cast<double>(attrs.k());
  const Split split = ChooseSplit({{{1, 1}, {rows, most}, {panels, 1}}}, threads, [&](const auto& sizes) {
    const double lines = static_cast<double>(sizes[1]) * k;
    return lines * static_cast<double>(sizes[2] * kIntegerColumns) / 2 + lines * kWiden;
  });
  ParallelRun(split.count(), [&](int task) {
    const std::array<int, 3> part = split[task];
    RunPart(attrs, data, kernels, Part(rows, most, split.parts[1], part[1]), Part(panels, 1, split.parts[2], part[2]));
  });
}

std::vector<std::string> IntegerVectors() {
  std::vector<std::string> names;
  for (const Kernels& kernels : Kernels::All()) names.push_back(kernels.name);
  return names;
}

bool SetIntegerVectors(const std::string& name) {
  const std::vector<std::string> names = IntegerVectors();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return false;
  chosen = static_cast<int>(found - names.begin());
  return true;
}

}  // namespace uir::library
