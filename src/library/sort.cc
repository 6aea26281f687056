// SPDX-License-Identifier: Apache-2.0
// Sorted rows: every element becomes a rank, an unsigned number that compares as the element does, beside its place.
// Few of a row are picked by comparing with the last of the best so far; whole rows are sorted digit by digit.

#include "library/sort.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/rounding.h"
#include "library/kernel.h"
#include "library/parallel.h"

namespace uir::library {
namespace {

/*! Ranks that are made and compared at once: some vectors, and few beside which one better one costs little. */
constexpr int64_t kChunk = 32;
/*! Columns that are brought side by side where the sorted axis is not the last: a line of memory of float32. */
constexpr int64_t kColumns = 16;
/*! Of 8 bits, by which rows are dealt. */
constexpr int kBuckets = 256;
/*! Rows that are longer by this factor than what is looked at together are walked. */
constexpr int64_t kFew = 4;
/*! The best are kept in order if they are as many at most. */
constexpr int64_t kInOrder = 32;
/*! Elements that are sorted by comparing each with all. */
constexpr int64_t kRun = 8;
/*! Others are not dealt where at most one element in so many is asked for. */
constexpr int64_t kSome = 8;
/*! Nanoseconds of work from which one more thread pays. */
constexpr double kWorth = 5e3;

template <typename B>
constexpr B kFirstBit = static_cast<B>(B{1} << (8 * sizeof(B) - 1));

//! Elements by their bits: ranks, and the type of C++ that compares as they do but for NaN; void: none.
template <typename B>
struct UnsignedNumber {
  using Bits = B;
  using Native = B;
  static B Rank(B bits) { return bits; }
};

template <typename B>
struct SignedNumber {
  using Bits = B;
  using Native = std::make_signed_t<B>;
  static B Rank(B bits) { return bits ^ kFirstBit<B>; }
};

/*! `infinity`: its bits. */
template <typename B, B infinity, typename N = void>
struct Float {
  using Bits = B;
  using Native = N;
  static B Rank(B bits) {
    const B magnitude = bits & static_cast<B>(~kFirstBit<B>);
    const B negative = static_cast<B>(~bits), positive = bits | kFirstBit<B>;
    const B rank = magnitude == 0 ? kFirstBit<B> : (bits & kFirstBit<B>) != 0 ? negative : positive;
    return magnitude > infinity ? std::numeric_limits<B>::max() : rank;
  }
};

/*! A rank above its place: equal ranks compare by their places. */
struct NarrowEntry {
  uint64_t both;
  NarrowEntry() = default;
  NarrowEntry(uint64_t rank, uint64_t place) : both(rank << 32 | place) {}
  uint64_t rank() const { return both >> 32; }
  int64_t place() const { return static_cast<int64_t>(both & 0xffffffffu); }
  bool operator<(const NarrowEntry& other) const { return both < other.both; }
};

struct WideEntry {
  uint64_t key, at;
  WideEntry() = default;
  WideEntry(uint64_t rank, uint64_t place) : key(rank), at(place) {}
  uint64_t rank() const { return key; }
  int64_t place() const { return static_cast<int64_t>(at); }
  bool operator<(const WideEntry& other) const { return key != other.key ? key < other.key : at < other.at; }
};

template <typename Number>
class RowSorter {
 public:
  using Bits = typename Number::Bits;

  RowSorter(const SortAttrs& attrs, const SortData& data)
      : attrs_(attrs), data_(data), flip_(attrs.descending ? std::numeric_limits<Bits>::max() : Bits{0}) {
    few_ = Room() * kFew <= attrs.length;
    const int64_t entries = few_ ? Room() + kChunk : 2 * attrs.length;
    entries_ = reinterpret_cast<Entry*>(ThreadScratch(kEntries, entries * sizeof(Entry)));
  }

  /*! Parts of the work, each by itself: rows, or columns side by side. */
  static int64_t Units(const SortAttrs& attrs) { return attrs.outer * CeilDiv(attrs.inner, kColumns); }

  /*! Of all units, by the estimate. */
  static double Nanoseconds(const SortAttrs& attrs) {
    const double rank = 0.5, dealt = 2.5 * sizeof(Bits) + 2;
    const double each = RoomFor(attrs) * kFew <= attrs.length ? rank : dealt;
    return each * static_cast<double>(attrs.outer) * static_cast<double>(attrs.length * attrs.inner);
  }

  void Unit(int64_t unit) {
    const int64_t blocks = CeilDiv(attrs_.inner, kColumns);
    const int64_t outer = unit / blocks, first = unit % blocks * kColumns;
    const Bits* x = reinterpret_cast<const Bits*>(data_.x) + outer * attrs_.length * attrs_.inner + first;
    const int64_t out = outer * attrs_.count * attrs_.inner + first;
    if (attrs_.inner == 1) return Row(x, out);
    const int64_t columns = std::min(kColumns, attrs_.inner - first), length = attrs_.length;
    Bits* turned = reinterpret_cast<Bits*>(ThreadScratch(kTurned, columns * length * sizeof(Bits)));
    for (int64_t row = 0; row < length; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        turned[column * length + row] = x[row * attrs_.inner + column];
    }
    for (int64_t column = 0; column < columns; ++column) Row(turned + column * length, out + column);
  }

 private:
  using Native = typename Number::Native;
  using Entry = std::conditional_t<sizeof(Bits) == 8, WideEntry, NarrowEntry>;
  enum Slot { kEntries, kTurned };

  /*! Entries among which the best of a row are sought. */
  static int64_t RoomFor(const SortAttrs& attrs) { return 4 * attrs.count + 2 * kChunk; }
  int64_t Room() const { return RoomFor(attrs_); }

  Bits RankOf(Bits bits) const { return Number::Rank(bits) ^ flip_; }

  void Row(const Bits* x, int64_t out) {
    const Entry* sorted = !few_ ? Sort(x) : attrs_.descending ? Pick<true>(x) : Pick<false>(x);
    for (int64_t i = 0; i < attrs_.count; ++i) {
      const int64_t place = sorted[i].place(), at = out + i * attrs_.inner;
      if (data_.values) reinterpret_cast<Bits*>(data_.values)[at] = x[place];
      if (!data_.indices) continue;
      if (data_.wide_indices) {
        reinterpret_cast<int64_t*>(data_.indices)[at] = place;
      } else {
        reinterpret_cast<int32_t*>(data_.indices)[at] = static_cast<int32_t>(place);
      }
    }
  }

  //! The first `count`, in order. An element counts if it comes before the last of the best so far: of equal ones
  //! the first are taken.
  template <bool kDescending>
  const Entry* Pick(const Bits* x) {
    const int64_t count = attrs_.count, room = Room();
    const bool in_order = count <= kInOrder;
    int64_t held = in_order ? count : room / 2;
    for (int64_t i = 0; i < held; ++i) entries_[i] = Entry(RankOf(x[i]), i);
    int64_t begin = held;
    if (in_order) {
      std::sort(entries_, entries_ + count);
    } else {
      Best(held);
    }
    held = count;
    for (; begin < attrs_.length; begin += kChunk) {
      const int64_t size = std::min(kChunk, attrs_.length - begin);
      if (size == kChunk) {
        const Before<kDescending> before(x[entries_[count - 1].place()]);
        Bits any = 0;
        for (int64_t i = 0; i < kChunk; ++i) any |= static_cast<Bits>(before(x[begin + i]));
        if (!any) continue;
      }
      if (in_order) {
        Insert<kDescending>(x, begin, size);
      } else {
        held = Append(x, begin, size, held);
        if (held > room - kChunk) Best(held), held = count;
      }
    }
    if (!in_order) {
      Best(held);
      std::sort(entries_, entries_ + count);
    }
    return entries_;
  }

  //! Elements that may come before one; those that are NaN may be said to.
  template <bool kDescending>
  struct Before {
    using Limit = std::conditional_t<std::is_void_v<Native>, Bits, Native>;
    Limit limit;

    explicit Before(Bits last) { std::memcpy(&limit, &last, sizeof(limit)); }
    bool operator()(Bits bits) const {
      if constexpr (std::is_void_v<Native>) {
        return kDescending ? Number::Rank(bits) > Number::Rank(limit) : Number::Rank(bits) < Number::Rank(limit);
      } else {
        Native given;
        std::memcpy(&given, &bits, sizeof(given));
        return kDescending ? !(given <= limit) : !(given >= limit);
      }
    }
  };

  /*! Puts elements of a chunk among the best where they belong; the last ones fall out. */
  template <bool kDescending>
  void Insert(const Bits* x, int64_t begin, int64_t size) {
    const int64_t last = attrs_.count - 1;
    Before<kDescending> before(x[entries_[last].place()]);
    for (int64_t i = begin; i < begin + size; ++i) {
      if (!before(x[i])) continue;
      const Entry entry(RankOf(x[i]), i);
      if (!(entry < entries_[last])) continue;
      int64_t at = last;
      for (; at > 0 && entry < entries_[at - 1]; --at) entries_[at] = entries_[at - 1];
      entries_[at] = entry;
      before = Before<kDescending>(x[entries_[last].place()]);
    }
  }

  /*! Puts elements behind those that are held; returns how many are. */
  int64_t Append(const Bits* x, int64_t begin, int64_t size, int64_t held) {
    const Entry last = entries_[attrs_.count - 1];
    for (int64_t i = begin; i < begin + size; ++i) {
      entries_[held] = Entry(RankOf(x[i]), i);
      held += entries_[held] < last;
    }
    return held;
  }

  /*! Brings the best to the front, the last of them at the end. */
  void Best(int64_t held) {
    const int64_t last = attrs_.count - 1;
    std::nth_element(entries_, entries_ + last, entries_ + held);
  }

  static void SortRun(const Entry* from, int64_t size, Entry* to) {
    for (int64_t i = 0; i < size; ++i) {
      int64_t before = 0;
      for (int64_t j = 0; j < size; ++j) before += from[j] < from[i];
      to[before] = from[i];
    }
  }

  /*! Sorts few: runs of some by counting what comes before each, which are then merged. */
  const Entry* SortFew(Entry* from, Entry* to) {
    const int64_t length = attrs_.length;
    for (int64_t begin = 0; begin < length; begin += kRun) {
      if (length - begin >= kRun) {
        SortRun(from + begin, kRun, to + begin);  // of a known length: it is unrolled
      } else {
        SortRun(from + begin, length - begin, to + begin);
      }
    }
    std::swap(from, to);
    for (int64_t run = kRun; run < length; run *= 2) {
      for (int64_t begin = 0; begin < length; begin += 2 * run) {
        const Entry *a = from + begin, *b = from + std::min(begin + run, length);
        const Entry *end_a = b, *end_b = from + std::min(begin + 2 * run, length);
        Entry* out = to + begin;
        while (a != end_a && b != end_b) {
          const bool second = *b < *a;
          *out++ = second ? *b : *a;
          a += !second, b += second;
        }
        std::copy(b, end_b, std::copy(a, end_a, out));
      }
      std::swap(from, to);
    }
    return from;
  }

  const Entry* Sort(const Bits* x) {
    const int64_t length = attrs_.length;
    Entry *from = entries_, *to = entries_ + length;
    for (int64_t i = 0; i < length; ++i) from[i] = Entry(RankOf(x[i]), i);
    if (length < static_cast<int64_t>(32 * sizeof(Bits))) return SortFew(from, to);
    if (attrs_.count * kSome <= length) {
      std::nth_element(from, from + attrs_.count, from + length);
      std::sort(from, from + attrs_.count);
      return from;
    }
    std::array<std::array<uint32_t, kBuckets>, sizeof(Bits)> counts{};
    for (int64_t i = 0; i < length; ++i) {
      for (size_t digit = 0; digit < sizeof(Bits); ++digit) ++counts[digit][Digit(from[i], digit)];
    }
    for (size_t digit = 0; digit < sizeof(Bits); ++digit) {
      std::array<uint32_t, kBuckets>& places = counts[digit];
      if (places[Digit(from[0], digit)] == length) continue;  // all have the same one
      std::exclusive_scan(places.begin(), places.end(), places.begin(), uint32_t{0});
      for (int64_t i = 0; i < length; ++i) to[places[Digit(from[i], digit)]++] = from[i];
      std::swap(from, to);
    }
    return from;
  }

  static size_t Digit(const Entry& entry, size_t digit) { return entry.rank() >> (8 * digit) & (kBuckets - 1); }

  const SortAttrs& attrs_;
  const SortData& data_;
  const Bits flip_;
  bool few_;
  Entry* entries_;
};

template <typename Number>
void Run(const SortAttrs& attrs, const SortData& data, int threads) {
  using Sorter = RowSorter<Number>;
  const int64_t units = Sorter::Units(attrs);
  const double worth = std::min(Sorter::Nanoseconds(attrs) / kWorth, static_cast<double>(threads));
  const int tasks = static_cast<int>(std::min(std::max<int64_t>(1, static_cast<int64_t>(worth)), units));
  ParallelRun(tasks, [&](int task) {
    Sorter sorter(attrs, data);
    const Range part = Part(units, 1, tasks, task);
    for (int64_t unit = part.begin; unit < part.begin + part.size; ++unit) sorter.Unit(unit);
  });
}

}  // namespace

void RunSort(const SortAttrs& attrs, const SortData& data, int threads) {
  switch (data.type) {
    case SortType::kI8:
      return Run<SignedNumber<uint8_t>>(attrs, data, threads);
    case SortType::kI16:
      return Run<SignedNumber<uint16_t>>(attrs, data, threads);
    case SortType::kI32:
      return Run<SignedNumber<uint32_t>>(attrs, data, threads);
    case SortType::kI64:
      return Run<SignedNumber<uint64_t>>(attrs, data, threads);
    case SortType::kU8:
      return Run<UnsignedNumber<uint8_t>>(attrs, data, threads);
    case SortType::kU16:
      return Run<UnsignedNumber<uint16_t>>(attrs, data, threads);
    case SortType::kU32:
      return Run<UnsignedNumber<uint32_t>>(attrs, data, threads);
    case SortType::kU64:
      return Run<UnsignedNumber<uint64_t>>(attrs, data, threads);
    case SortType::kF16:
      return Run<Float<uint16_t, 0x7c00>>(attrs, data, threads);
    case SortType::kBF16:
      return Run<Float<uint16_t, 0x7f80>>(attrs, data, threads);
    case SortType::kF32:
      return Run<Float<uint32_t, 0x7f800000, float>>(attrs, data, threads);
    case SortType::kF64:
      return Run<Float<uint64_t, 0x7ff0000000000000, double>>(attrs, data, threads);
  }
}

}  // namespace uir::library
