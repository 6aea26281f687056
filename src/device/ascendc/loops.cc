// SPDX-License-Identifier: Apache-2.0
#include "device/ascendc/loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "device/ascendc/engine.h"

namespace uir::ascendc {

namespace {

// Two's complement arithmetic wraps; it is done on unsigned numbers, for which that is defined.
template <typename T>
struct Wrap {
  using U = T;
};
template <>
struct Wrap<int16_t> {
  using U = uint32_t;
};
template <>
struct Wrap<int32_t> {
  using U = uint32_t;
};

struct AddOf {
  template <typename T>
  static T Do(T a, T b) {
    using U = typename Wrap<T>::U;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
};
struct SubOf {
  template <typename T>
  static T Do(T a, T b) {
    using U = typename Wrap<T>::U;
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
  }
};
struct MulOf {
  template <typename T>
  static T Do(T a, T b) {
    using U = typename Wrap<T>::U;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
struct DivOf {
  static float Do(float a, float b) { return a / b; }
};
// A NaN on either side stays one.
struct MaxOf {
  template <typename T>
  static T Do(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct MinOf {
  template <typename T>
  static T Do(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct AndOf {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct OrOf {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct ShiftLeftOf {
  template <typename T>
  static T Do(T a, T b) {
    using U = std::make_unsigned_t<T>;
    return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? T{0} : static_cast<T>(static_cast<U>(a) << b);
  }
};
struct ShiftRightOf {
  template <typename T>
  static T Do(T a, T b) {
    T most = static_cast<T>(8 * sizeof(T) - 1);
    return static_cast<T>(a >> (b < 0 || b > most ? most : b));
  }
};
struct LeakyOf {
  static float Do(float a, float b) { return a >= 0 || a != a ? a : a * b; }
};
struct ReluOf {
  template <typename T>
  static T Do(T a) {
    return a > 0 || a != a ? a : T{0};
  }
};
struct ExpOf {
  static float Do(float a) { return std::exp(a); }
};
struct LnOf {
  static float Do(float a) { return std::log(a); }
};
struct AbsOf {
  static float Do(float a) { return std::fabs(a); }
};
struct ReciprocalOf {
  static float Do(float a) { return 1.0f / a; }
};
struct RsqrtOf {
  static float Do(float a) { return 1.0f / std::sqrt(a); }
};
struct SqrtOf {
  static float Do(float a) { return std::sqrt(a); }
};
struct NotOf {
  template <typename T>
  static T Do(T a) {
    return static_cast<T>(~a);
  }
};

template <typename T>
T ScalarAs(const UirScalar& scalar) {
  return std::is_integral<T>::value ? static_cast<T>(scalar.integer) : static_cast<T>(scalar.real);
}

template <typename T>
T* Out(uint8_t* p) {
  return reinterpret_cast<T*>(p);
}
template <typename T>
const T* In(const uint8_t* p) {
  return reinterpret_cast<const T*>(p);
}

template <typename F, typename T>
void UnaryLoop(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) Out<T>(dst)[i] = F::Do(In<T>(a)[i]);
}
template <typename F, typename T>
void BinaryLoop(uint8_t* dst, const uint8_t* a, const uint8_t* b, const UirScalar&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) Out<T>(dst)[i] = F::Do(In<T>(a)[i], In<T>(b)[i]);
}
template <typename F, typename T>
void ScalarLoop(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar& scalar, int64_t n) {
  T b = ScalarAs<T>(scalar);
  for (int64_t i = 0; i < n; ++i) Out<T>(dst)[i] = F::Do(In<T>(a)[i], b);
}
template <typename T>
void FillLoop(uint8_t* dst, const uint8_t*, const uint8_t*, const UirScalar& scalar, int64_t n) {
  std::fill(Out<T>(dst), Out<T>(dst) + n, ScalarAs<T>(scalar));
}

// Of half: in float, rounded once. For a sum, product, quotient or root that is what half would give.
constexpr int64_t kChunk = 512;

template <Loop kLoop>
void HalfLoop(uint8_t* dst, const uint8_t* a, const uint8_t* b, const UirScalar& scalar, int64_t n) {
  float x[kChunk], y[kChunk], z[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t count = std::min(kChunk, n - i);
    if (a) FloatOfHalf(x, In<uint16_t>(a) + i, count);
    if (b) FloatOfHalf(y, In<uint16_t>(b) + i, count);
    kLoop(reinterpret_cast<uint8_t*>(z), reinterpret_cast<uint8_t*>(x), reinterpret_cast<uint8_t*>(y), scalar, count);
    HalfOfFloat(Out<uint16_t>(dst) + i, z, count);
  }
}
void FillHalf(uint8_t* dst, const uint8_t*, const uint8_t*, const UirScalar& scalar, int64_t n) {
  auto value = static_cast<float>(scalar.real);
  uint16_t bits;
  HalfOfFloat(&bits, &value, 1);
  std::fill(Out<uint16_t>(dst), Out<uint16_t>(dst) + n, bits);
}
void FillBfloat16(uint8_t* dst, const uint8_t*, const uint8_t*, const UirScalar& scalar, int64_t n) {
  auto value = static_cast<float>(scalar.real);
  uint16_t bits;
  Bfloat16OfFloat(&bits, &value, 1);
  std::fill(Out<uint16_t>(dst), Out<uint16_t>(dst) + n, bits);
}

template <int kBytes>
void CopyLoop(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar&, int64_t n) {
  std::memmove(dst, a, static_cast<size_t>(n * kBytes));
}

// dst + a * b, the product and the sum rounded each.
void MulAddLoop(uint8_t* dst, const uint8_t* a, const uint8_t* b, const UirScalar&, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float product = In<float>(a)[i] * In<float>(b)[i];
    Out<float>(dst)[i] += product;
  }
}
void AxpyLoop(uint8_t* dst, const uint8_t* a, const uint8_t*, const UirScalar& scalar, int64_t n) {
  auto b = static_cast<float>(scalar.real);
  for (int64_t i = 0; i < n; ++i) {
    float product = In<float>(a)[i] * b;
    Out<float>(dst)[i] += product;
  }
}

using FunctionKey = std::pair<std::string, uint32_t>;

template <typename F>
void AddUnary(std::map<FunctionKey, Function>* table, const char* name) {
  (*table)[{name, kUirFloat}] = {UnaryLoop<F, float>, false};
  (*table)[{name, kUirHalf}] = {HalfLoop<UnaryLoop<F, float>>, false};
}
template <typename F>
void AddBinary(std::map<FunctionKey, Function>* table, const char* name, bool integers) {
  (*table)[{name, kUirFloat}] = {BinaryLoop<F, float>, false};
  (*table)[{name, kUirHalf}] = {HalfLoop<BinaryLoop<F, float>>, false};
  if constexpr (!std::is_same<F, DivOf>::value) {
    if (!integers) return;
    (*table)[{name, kUirInt16}] = {BinaryLoop<F, int16_t>, false};
    (*table)[{name, kUirInt32}] = {BinaryLoop<F, int32_t>, false};
  }
}
template <typename F>
void AddScalar(std::map<FunctionKey, Function>* table, const char* name) {
  (*table)[{name, kUirFloat}] = {ScalarLoop<F, float>, false};
  (*table)[{name, kUirHalf}] = {HalfLoop<ScalarLoop<F, float>>, false};
  (*table)[{name, kUirInt16}] = {ScalarLoop<F, int16_t>, false};
  (*table)[{name, kUirInt32}] = {ScalarLoop<F, int32_t>, false};
}

/*! \brief What this chip has: the dtypes of the documentation of each function for Atlas A2. */
const std::map<FunctionKey, Function>& FunctionTable() {
  static const auto* table = [] {
    auto* t = new std::map<FunctionKey, Function>();
    AddBinary<AddOf>(t, "Add", true);
    AddBinary<SubOf>(t, "Sub", true);
    AddBinary<MulOf>(t, "Mul", true);
    AddBinary<MaxOf>(t, "Max", true);
    AddBinary<MinOf>(t, "Min", true);
    AddBinary<DivOf>(t, "Div", false);
    AddScalar<AddOf>(t, "Adds");
    AddScalar<MulOf>(t, "Muls");
    AddScalar<MaxOf>(t, "Maxs");
    AddScalar<MinOf>(t, "Mins");
    AddUnary<ExpOf>(t, "Exp");
    AddUnary<LnOf>(t, "Ln");
    AddUnary<AbsOf>(t, "Abs");
    AddUnary<ReciprocalOf>(t, "Reciprocal");
    AddUnary<RsqrtOf>(t, "Rsqrt");
    AddUnary<SqrtOf>(t, "Sqrt");
    AddUnary<ReluOf>(t, "Relu");
    (*t)[{"Relu", kUirInt32}] = {UnaryLoop<ReluOf, int32_t>, false};
    (*t)[{"LeakyRelu", kUirFloat}] = {ScalarLoop<LeakyOf, float>, false};
    (*t)[{"LeakyRelu", kUirHalf}] = {HalfLoop<ScalarLoop<LeakyOf, float>>, false};
    for (uint32_t type : {kUirInt16, kUirUint16}) {
      (*t)[{"And", type}] = {BinaryLoop<AndOf, uint16_t>, false};
      (*t)[{"Or", type}] = {BinaryLoop<OrOf, uint16_t>, false};
      (*t)[{"Not", type}] = {UnaryLoop<NotOf, uint16_t>, false};
    }
    (*t)[{"ShiftLeft", kUirInt16}] = {ScalarLoop<ShiftLeftOf, int16_t>, false};
    (*t)[{"ShiftLeft", kUirUint16}] = {ScalarLoop<ShiftLeftOf, uint16_t>, false};
    (*t)[{"ShiftLeft", kUirInt32}] = {ScalarLoop<ShiftLeftOf, int32_t>, false};
    (*t)[{"ShiftLeft", kUirUint32}] = {ScalarLoop<ShiftLeftOf, uint32_t>, false};
    (*t)[{"ShiftRight", kUirInt16}] = {ScalarLoop<ShiftRightOf, int16_t>, false};
    (*t)[{"ShiftRight", kUirUint16}] = {ScalarLoop<ShiftRightOf, uint16_t>, false};
    (*t)[{"ShiftRight", kUirInt32}] = {ScalarLoop<ShiftRightOf, int32_t>, false};
    (*t)[{"ShiftRight", kUirUint32}] = {ScalarLoop<ShiftRightOf, uint32_t>, false};
    for (uint32_t type : {kUirInt16, kUirUint16, kUirHalf, kUirBfloat16}) (*t)[{"Copy", type}] = {CopyLoop<2>, false};
    for (uint32_t type : {kUirInt32, kUirUint32, kUirFloat}) (*t)[{"Copy", type}] = {CopyLoop<4>, false};
    (*t)[{"Axpy", kUirFloat}] = {AxpyLoop, true};
    (*t)[{"MulAddDst", kUirFloat}] = {MulAddLoop, true};
    (*t)[{"Duplicate", kUirFloat}] = {FillLoop<float>, false};
    (*t)[{"Duplicate", kUirInt32}] = {FillLoop<int32_t>, false};
    (*t)[{"Duplicate", kUirUint32}] = {FillLoop<uint32_t>, false};
    (*t)[{"Duplicate", kUirInt16}] = {FillLoop<int16_t>, false};
    (*t)[{"Duplicate", kUirUint16}] = {FillLoop<uint16_t>, false};
    (*t)[{"Duplicate", kUirHalf}] = {FillHalf, false};
    (*t)[{"Duplicate", kUirBfloat16}] = {FillBfloat16, false};
    return t;
  }();
  return *table;
}

}  // namespace

Function FunctionOf(const std::string& name, uint32_t type) {
  auto found = FunctionTable().find({name, type});
  return found == FunctionTable().end() ? Function() : found->second;
}

}  // namespace uir::ascendc
