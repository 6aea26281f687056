// SPDX-License-Identifier: Apache-2.0
// How large numbers are. No guard: it is included behind vector_math.h, in a namespace and for instructions of its own.

/*! The largest magnitude of numbers, as bits: those of infinities and NaN are larger than of any number. */
struct Spread {
  Bits most = {};

  UIR_INLINE void Add(const Vector& x) {
    const Bits magnitude = reinterpret_cast<Bits>(x) & 0x7fffffffu;
    most = magnitude > most ? magnitude : most;
  }
  /*! The largest of all; NaN where one is. */
  float Largest() const {
    const uint32_t largest = LargestBits();
    float number;
    std::memcpy(&number, &largest, sizeof number);
    return number;
  }
  /*! Whether all are numbers below 2^limit, and one is at least 2^least, or all are zero. */
  bool IsWithin(int least, int limit) const {
    const uint32_t largest = LargestBits();
    auto power = [](int exponent) { return static_cast<uint32_t>(exponent + 127) << 23; };
    return largest == 0 || (power(least) <= largest && largest < power(limit));
  }

 private:
  uint32_t LargestBits() const {
    uint32_t largest = 0;
    for (int lane = 0; lane < kLanes; ++lane) largest = most[lane] > largest ? most[lane] : largest;
    return largest;
  }
};
