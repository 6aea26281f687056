// SPDX-License-Identifier: Apache-2.0
#include "library/attention_units.h"

#include <algorithm>

#include "library/half_floats.h"

namespace uir::library {
namespace {

/*! The keys that a row of a mask opens, from the first to behind the last; `closed`, as all numbers, by its bits. */
template <typename Bits>
OpenKeys Opened(const Bits* mask, Bits closed, int64_t keys) {
  int64_t end = keys, begin = 0;
  while (end > 0) {  // in pieces, which the compiler makes vectors of
    const int64_t piece = std::min<int64_t>(end, 64);
    Bits differing = 0;
    for (int64_t j = end - piece; j < end; ++j) differing |= mask[j] ^ closed;
    if (differing != 0) break;
    end -= piece;
  }
  while (end > 0 && mask[end - 1] == closed) --end;
  while (begin < end && mask[begin] == closed) ++begin;
  return {begin, end};
}

OpenKeys Opened(DType type, const char* mask, int64_t keys) {
  if (type == DType::kF32) {
    return Opened(reinterpret_cast<const uint32_t*>(mask), uint32_t{0xff800000}, keys);  // -inf
  }
  const uint16_t closed = type == DType::kF16 ? 0xfc00 : 0xff80;  // -inf
  return Opened(reinterpret_cast<const uint16_t*>(mask), closed, keys);
}

/*! Of all rows of a mask, behind those of others. */
void AddOpened(const AttentionAttrs& attrs, DType type, const char* mask, int64_t step, std::vector<OpenKeys>* all) {
  for (int64_t row = 0; row < attrs.m; ++row, mask += step) {
    all->push_back(row > 0 && step == 0 ? all->back() : Opened(type, mask, attrs.n));
  }
}

}  // namespace

AttentionUnits UnitsOf(const AttentionAttrs& attrs, const AttentionData& data, std::vector<float>* wide) {
  const size_t rank = attrs.batch.size();
  const auto shared = [&](size_t d) { return attrs.key.strides[d] == 0 && attrs.value.strides[d] == 0; };
  std::vector<int64_t> index(rank);
  const auto at = [&](const OperandView& view) {
    int64_t offset = view.offset;
    for (size_t d = 0; d < rank; ++d) offset += index[d] * view.strides[d];
    return offset;
  };
  const auto walk = [&](bool along_shared, size_t d, const auto& self, const auto& body) -> void {
    if (d == rank) return body();
    if (shared(d) != along_shared) return self(along_shared, d + 1, self, body);
    for (index[d] = 0; index[d] < attrs.batch[d]; ++index[d]) self(along_shared, d + 1, self, body);
    index[d] = 0;
  };
  const auto step = [&](const auto& of, const OperandView& view) {
    return view.strides[rank] * static_cast<int64_t>(SizeOf(of.type));
  };
  AttentionUnits made;
  made.keys = attrs.n, made.head_rows = attrs.m, made.first = attrs.first, made.last = attrs.last;
  made.query_step = step(data.query, attrs.query);
  made.mask_step = step(data.mask, attrs.mask), made.out_step = step(data.out, attrs.out);
  const bool narrow = data.query.type != DType::kF32;
  const int64_t given_step = made.query_step, head = attrs.m * attrs.d;
  float* widened = nullptr;
  if (narrow) {
    int64_t numbers = head;
    for (int64_t size : attrs.batch) numbers *= size;
    wide->resize(numbers);
    widened = wide->data(), made.query_step = attrs.d * static_cast<int64_t>(sizeof(float));
  }
  int64_t mask_at = -1;
  walk(false, 0, walk, [&] {
    made.units.push_back({data.key.at(at(attrs.key)), data.value.at(at(attrs.value)), {}});
    AttentionUnit& unit = made.units.back();
    walk(true, 0, walk, [&] {
      AttentionHead of{data.query.at(at(attrs.query)), nullptr, data.out.at(at(attrs.out)), 0};
      if (narrow) {
        for (int64_t row = 0; row < attrs.m; ++row) {
          ToFloats(data.query.type, of.query + row * given_step, attrs.d, widened + row * attrs.d);
        }
        of.query = reinterpret_cast<const char*>(widened), widened += head;
      }
      if (data.mask.data) {
        const int64_t mask = at(attrs.mask);
        of.mask = data.mask.at(mask);
        if (made.open.empty() || mask != mask_at) AddOpened(attrs, data.mask.type, of.mask, made.mask_step, &made.open);
        mask_at = mask, of.open = static_cast<int64_t>(made.open.size()) - attrs.m;
      }
      unit.heads.push_back(of);
    });
  });
  return made;
}

void AttentionUnits::MakeRows(const AttentionUnit& unit, const Range& rows, AttentionRow* to) const {
  int64_t head = rows.begin / head_rows, row = rows.begin % head_rows;
  for (int64_t left = rows.size; left > 0; ++head, row = 0) {
    const AttentionHead& of = unit.heads[head];
    const int64_t end = std::min(head_rows, row + left);
    left -= end - row;
    for (; row < end; ++row) {
      AttentionRow made{reinterpret_cast<const float*>(of.query + row * query_step), nullptr, of.out + row * out_step,
                        0, keys};
      if (first) made.begin = std::clamp(row + *first, int64_t{0}, keys);
      if (last) made.end = std::clamp(row + *last + 1, made.begin, keys);
      if (of.mask) {
        const OpenKeys& opened = open[of.open + row];
        made.mask = of.mask + row * mask_step;
        made.begin = std::max(made.begin, opened.begin);
        made.end = std::max(made.begin, std::min(made.end, opened.end));
      }
      *to++ = made;
    }
  }
}

}  // namespace uir::library
