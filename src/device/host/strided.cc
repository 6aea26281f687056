// SPDX-License-Identifier: Apache-2.0
#include "device/host/strided.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/engine/engine_api.h"

namespace uir_host {
namespace {

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(bits & 0x7fff) << 13;
  uint32_t wide = rest;
  float value;
  // The exponent's bias goes from 15 to 127; subnormals become normal by a product, infinities keep all ones.
  std::memcpy(&value, &wide, 4);
  if ((bits & 0x7c00) == 0x7c00) {
    wide = rest | 0x7f800000;
    std::memcpy(&value, &wide, 4);
  } else {
    value *= 0x1p112F;
  }
  uint32_t out;
  std::memcpy(&out, &value, 4);
  out |= sign;
  std::memcpy(&value, &out, 4);
  return value;
}

uint16_t FloatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t size = bits & 0x7fffffff;
  if (size > 0x7f800000) return sign | 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00;
  if (size < 0x38800000) {
    // Subnormal: in units of 2^-24, rounded by the addition of a float whose last bit is that unit.
    float magnitude;
    std::memcpy(&magnitude, &size, 4);
    magnitude += 0.5F;
    std::memcpy(&bits, &magnitude, 4);
    return sign | static_cast<uint16_t>(bits - 0x3f000000);
  }
  const uint32_t rounded = size + 0xfff + (size >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

float BfloatToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t FloatToBfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float Load(Element type, const char* data) {
  if (type == Element::kInt8) return static_cast<signed char>(*data);
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  if (type == Element::kHalf) return HalfToFloat(bits);
  if (type == Element::kBfloat) return BfloatToFloat(bits);
  float value;
  std::memcpy(&value, data, 4);
  return value;
}

void Store(Element type, float value, char* data) {
  if (type == Element::kFloat) {
    std::memcpy(data, &value, 4);
    return;
  }
  const uint16_t bits = type == Element::kHalf ? FloatToHalf(value) : FloatToBfloat(value);
  std::memcpy(data, &bits, 2);
}

/*! Calls `run(first element, its address)` for every row of the last dimension. */
template <typename Run>
void EachRow(const Strided& tensor, Run run) {
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t rows = columns == 0 ? 0 : Count(tensor.shape) / columns;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t offset = tensor.offset, rest = row;
    for (int64_t d = static_cast<int64_t>(tensor.shape.size()) - 2; d >= 0; --d) {
      offset += rest % tensor.shape[d] * tensor.strides[d];
      rest /= tensor.shape[d];
    }
    run(row * columns, tensor.data + offset * SizeOf(tensor.type));
  }
}

}  // namespace

int64_t SizeOf(Element type) {
  if (type == Element::kInt8) return 1;
  return type == Element::kFloat ? 4 : 2;
}

int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

bool Read(const Strided& tensor, std::vector<float>* values, std::string* message) {
  values->resize(Count(tensor.shape));
  const int64_t size = SizeOf(tensor.type);
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t step = tensor.shape.empty() ? 1 : tensor.strides.back();
  bool good = true;
  EachRow(tensor, [&](int64_t first, const char* row) {
    if (!good) return;
    const int64_t runs = step == 1 ? 1 : columns;
    for (int64_t r = 0; r < runs && good; ++r) {
      good = uir_simt_first_unwritten(row + r * step * size, step == 1 ? columns * size : size) < 0;
    }
    if (!good) *message = "nothing wrote an element at or after element " + std::to_string(first) + " of an operand";
    for (int64_t c = 0; c < columns && good; ++c) (*values)[first + c] = Load(tensor.type, row + c * step * size);
  });
  return good;
}

void Write(const Strided& tensor, const std::vector<float>& values) {
  const int64_t size = SizeOf(tensor.type);
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t step = tensor.shape.empty() ? 1 : tensor.strides.back();
  std::vector<char> line(columns * size);
  EachRow(tensor, [&](int64_t first, char* row) {
    for (int64_t c = 0; c < columns; ++c) Store(tensor.type, values[first + c], &line[c * size]);
    if (step == 1) {
      uir_simt_copy(row, line.data(), line.size());
      return;
    }
    for (int64_t c = 0; c < columns; ++c) uir_simt_copy(row + c * step * size, &line[c * size], size);
  });
}

int64_t BroadcastIndex(const std::vector<int64_t>& shape, const std::vector<int64_t>& to, int64_t index) {
  int64_t found = 0, step = 1;
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t extent = to[to.size() - 1 - d], at = index % extent;
    index /= extent;
    if (d >= shape.size()) continue;
    const int64_t own = shape[shape.size() - 1 - d];
    found += own == 1 ? 0 : at * step;
    step *= own;
  }
  return found;
}

bool Joined(std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t>* joined) {
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), 1);
  joined->resize(a.size());
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] != b[d] && a[d] != 1 && b[d] != 1) return false;
    (*joined)[d] = std::max(a[d], b[d]);
  }
  return true;
}

std::vector<float> Products(const std::vector<float>& left, const std::vector<int64_t>& a,
                            const std::vector<float>& right, const std::vector<int64_t>& b,
                            const std::vector<int64_t>& out) {
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  const std::vector<int64_t> batch(out.begin(), out.end() - 2), first(a.begin(), a.end() - 2),
      second(b.begin(), b.end() - 2);
  std::vector<float> sums(Count(out), 0.0F);
  for (int64_t i = 0; i < Count(batch); ++i) {
    const float* x = &left[BroadcastIndex(first, batch, i) * m * k];
    const float* y = &right[BroadcastIndex(second, batch, i) * k * n];
    float* z = &sums[i * m * n];
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t inner = 0; inner < k; ++inner) {
        const float factor = x[row * k + inner];
        for (int64_t column = 0; column < n; ++column) z[row * n + column] += factor * y[inner * n + column];
      }
    }
  }
  return sums;
}

}  // namespace uir_host
