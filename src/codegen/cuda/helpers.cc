// SPDX-License-Identifier: Apache-2.0
// The table of device functions that expressions call.
#include "codegen/cuda/helpers.h"

#include <functional>

#include "codegen/cuda/scalar.h"
#include "codegen/error.h"

namespace uir::codegen::cuda {
namespace {

//! \brief One device function; in its text $T is the dtype's compute type, $U the unsigned type in which it wraps,
//! $B its bits, $f the suffix of C's functions on it, $S its name, $C its stored type.
struct Helper {
  const char* name;
  //! \brief What dtypes it is written for: i, u, b as `Kind` has them, f(p32 and fp64), D(ouble), F(loat), H(alf:
  //! fp16 and bf16), E(ight bits: fp8); empty where it has no variants.
  const char* kinds;
  /*! \brief Helpers that it calls, separated by spaces; ":$" stands for the same dtype. */
  const char* calls;
  const char* header;
  const char* text;
};

// clang-format off
constexpr Helper kHelpers[] = {
    // --- integers that wrap: signed arithmetic that overflows is undefined in C++, unsigned is not
    {"wrap_add", "iu", "", "", R"(__device__ __forceinline__ $T wrap_add($T a, $T b) {
  return static_cast<$T>(static_cast<$U>(a) + static_cast<$U>(b));
}
)"},
    {"wrap_sub", "iu", "", "", R"(__device__ __forceinline__ $T wrap_sub($T a, $T b) {
  return static_cast<$T>(static_cast<$U>(a) - static_cast<$U>(b));
}
)"},
    {"wrap_mul", "iu", "", "", R"(__device__ __forceinline__ $T wrap_mul($T a, $T b) {
  return static_cast<$T>(static_cast<$U>(a) * static_cast<$U>(b));
}
)"},
    {"wrap_abs", "i", "wrap_sub:$", "", R"(__device__ __forceinline__ $T wrap_abs($T a) {
  return a < 0 ? wrap_sub($T(0), a) : a;
}
)"},
    // the least integer over -1 wraps to itself; over zero is zero
    {"trunc_div", "i", "wrap_sub:$", "", R"(__device__ __forceinline__ $T trunc_div($T a, $T b) {
  if (b == 0) return 0;
  return b == -1 ? wrap_sub($T(0), a) : static_cast<$T>(a / b);
}
)"},
    {"trunc_div", "u", "", "", R"(__device__ __forceinline__ $T trunc_div($T a, $T b) {
  return b == 0 ? $T(0) : static_cast<$T>(a / b);
}
)"},
    {"trunc_mod", "i", "", "", R"(__device__ __forceinline__ $T trunc_mod($T a, $T b) {
  return b == 0 || b == -1 ? $T(0) : static_cast<$T>(a % b);
}
)"},
    {"trunc_mod", "u", "", "", R"(__device__ __forceinline__ $T trunc_mod($T a, $T b) {
  return b == 0 ? $T(0) : static_cast<$T>(a % b);
}
)"},
    {"floor_div", "i", "trunc_div:$ trunc_mod:$", "", R"(__device__ __forceinline__ $T floor_div($T a, $T b) {
  const bool below = trunc_mod(a, b) != 0 && (a < 0) != (b < 0);
  return static_cast<$T>(trunc_div(a, b) - (below ? 1 : 0));
}
)"},
    {"floor_mod", "i", "trunc_mod:$", "", R"(__device__ __forceinline__ $T floor_mod($T a, $T b) {
  const $T rest = trunc_mod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? static_cast<$T>(rest + b) : rest;
}
)"},
    {"shift_left", "iu", "", "", R"(__device__ __forceinline__ $T shift_left($T a, $T b) {
  const $U by = static_cast<$U>(b);
  return by < $B ? static_cast<$T>(static_cast<$U>(a) << by) : $T(0);
}
)"},
    {"shift_right", "i", "", "", R"(__device__ __forceinline__ $T shift_right($T a, $T b) {
  const $U by = static_cast<$U>(b);
  return static_cast<$T>(a >> (by < $B ? by : $B - 1));
}
)"},
    {"shift_right", "u", "", "", R"(__device__ __forceinline__ $T shift_right($T a, $T b) {
  return b < $B ? static_cast<$T>(a >> b) : $T(0);
}
)"},
    // by squaring; a negative exponent truncates 1 / a^-b
    {"int_pow", "u", "wrap_mul:$", "", R"(__device__ __forceinline__ $T int_pow($T a, $T b) {
  $T result = 1;
  for (; b > 0; b = static_cast<$T>(b >> 1)) {
    if (b & 1) result = wrap_mul(result, a);
    a = wrap_mul(a, a);
  }
  return result;
}
)"},
    {"int_pow", "i", "wrap_mul:$", "", R"(__device__ __forceinline__ $T int_pow($T a, $T b) {
  if (b < 0) return static_cast<$T>(a == 1 ? 1 : a == -1 ? 1 - 2 * (b & 1) : 0);
  $T result = 1;
  for (; b > 0; b = static_cast<$T>(b >> 1)) {
    if (b & 1) result = wrap_mul(result, a);
    a = wrap_mul(a, a);
  }
  return result;
}
)"},
    // --- the greater and the lesser; of floats NaN where either is, which C's fmax and fmin are not
    {"max_of", "iub", "", "", R"(__device__ __forceinline__ $T max_of($T a, $T b) { return a > b ? a : b; }
)"},
    {"min_of", "iub", "", "", R"(__device__ __forceinline__ $T min_of($T a, $T b) { return a < b ? a : b; }
)"},
    {"max_of", "F", "", "", R"(__device__ __forceinline__ float max_of(float a, float b) {
#ifdef __CUDA_ARCH__
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a > b || a != a ? a : b;
#endif
}
)"},
    {"min_of", "F", "", "", R"(__device__ __forceinline__ float min_of(float a, float b) {
#ifdef __CUDA_ARCH__
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a < b || a != a ? a : b;
#endif
}
)"},
    {"max_of", "D", "", "", R"(__device__ __forceinline__ double max_of(double a, double b) {
  return a > b || a != a ? a : b;
}
)"},
    {"min_of", "D", "", "", R"(__device__ __forceinline__ double min_of(double a, double b) {
  return a < b || a != a ? a : b;
}
)"},
    // --- floats
    {"floor_mod", "f", "", "", R"(__device__ __forceinline__ $T floor_mod($T a, $T b) {
  const $T rest = fmod$f(a, b);
  if (rest == 0) return copysign$f(rest, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    // x + 0 is +0 for -0, and NaN for NaN
    {"sign_of", "f", "", "", R"(__device__ __forceinline__ $T sign_of($T x) {
  return x > 0 ? $T(1) : x < 0 ? $T(-1) : x + $T(0);
}
)"},
    {"sign_of", "i", "", "", R"(__device__ __forceinline__ $T sign_of($T x) {
  return static_cast<$T>(x > 0 ? 1 : x < 0 ? -1 : 0);
}
)"},
    {"sigmoid", "f", "", "", R"(__device__ __forceinline__ $T sigmoid($T x) { return $T(1) / ($T(1) + exp$f(-x)); }
)"},
    // the root, but for the infinity that pow(-inf, 0.5) is and the sign of zero that it drops; its inverse is
    // pow(x, -0.5)
    {"pow_half", "f", "", "", R"(__device__ __forceinline__ $T pow_half($T x) {
  return fabs$f(x) > $M ? fabs$f(x) : sqrt$f(x) + $T(0);
}
)"},
    // --- fp8, as IEEE does it: out of range is infinity, or NaN where there is none; the hardware's
    // conversion saturates instead
    {"to_fp8e4m3", "", "", "cuda_fp8.h", R"(__device__ __forceinline__ __nv_fp8_e4m3 to_fp8e4m3(float x) {
  __nv_fp8_e4m3 r;
  r.__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
  if (fabsf(x) > 464.0f) r.__x = r.__x | 0x7f;
  return r;
}
)"},
    {"to_fp8e5m2", "", "", "cuda_fp8.h", R"(__device__ __forceinline__ __nv_fp8_e5m2 to_fp8e5m2(float x) {
  __nv_fp8_e5m2 r;
  r.__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
  if (fabsf(x) >= 61440.0f) r.__x = (r.__x & 0x80) | 0x7c;
  return r;
}
)"},
    {"from_fp8e4m3", "", "", "cuda_fp8.h", R"(__device__ __forceinline__ float from_fp8e4m3(__nv_fp8_e4m3 x) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(x.__x, __NV_E4M3)));
}
)"},
    {"from_fp8e5m2", "", "", "cuda_fp8.h", R"(__device__ __forceinline__ float from_fp8e5m2(__nv_fp8_e5m2 x) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(x.__x, __NV_E5M2)));
}
)"},
    // --- directed roundings that the hardware has no conversion for; a float's bits + 1 is the next in magnitude
    {"trunc_to", "E", "to_$S from_$S", "cuda_fp8.h", R"(__device__ __forceinline__ $C trunc_to_$S(float x) {
  $C r = to_$S(x);
  if (fabsf(from_$S(r)) > fabsf(x)) r.__x -= 1;
  return r;
}
)"},
    {"away_to", "E", "to_$S from_$S", "cuda_fp8.h", R"(__device__ __forceinline__ $C away_to_$S(float x) {
  $C r = to_$S(x);
  if (fabsf(from_$S(r)) < fabsf(x)) r.__x += 1;
  return r;
}
)"},
    {"floor_to", "E", "trunc_to:$ away_to:$", "cuda_fp8.h", R"(__device__ __forceinline__ $C floor_to_$S(float x) {
  return x < 0 ? away_to_$S(x) : trunc_to_$S(x);
}
)"},
    {"ceil_to", "E", "trunc_to:$ away_to:$", "cuda_fp8.h", R"(__device__ __forceinline__ $C ceil_to_$S(float x) {
  return x < 0 ? trunc_to_$S(x) : away_to_$S(x);
}
)"},
    {"round_to", "E", "trunc_to:$", "cuda_fp8.h", R"(__device__ __forceinline__ $C round_to_$S(float x) {
  const $C low = trunc_to_$S(x);
  $C high = low;
  high.__x += 1;
  const float step = fabsf(from_$S(high) - from_$S(low));
  return fabsf(x - from_$S(low)) >= step / 2 ? high : low;
}
)"},
    {"round_to", "H", "", "", R"(__device__ __forceinline__ $C round_to_$S(float x) {
  const $C low = $N_rz(x);
  const $C high = $P($Q(low) + 1);
  const float step = fabsf($W(high) - $W(low));
  return fabsf(x - $W(low)) >= step / 2 ? high : low;
}
)"},
    {"round_to", "F", "", "", R"(__device__ __forceinline__ float round_to_fp32(double x) {
  const float low = __double2float_rz(x);
  const float high = __int_as_float(__float_as_int(low) + 1);
  const double step = fabs(static_cast<double>(high) - low);
  return fabs(x - low) >= step / 2 ? high : low;
}
)"},
    // rounds to the neighbour whose last bit is set, so that a second rounding, to fewer bits, is as if it were the first
    {"to_odd", "", "", "", R"(__device__ __forceinline__ float to_odd(double x) {
  const float r = __double2float_rz(x);
  return static_cast<double>(r) == x ? r : __int_as_float(__float_as_int(r) | 1);
}
)"},
    // --- another lane's value; shuffles move words
    {"shuffle", "fFD", "", "", R"(__device__ __forceinline__ $T shuffle($T x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}
)"},
    {"shuffle", "iub", "", "", R"(__device__ __forceinline__ $T shuffle($T x, int lane) {
  return static_cast<$T>(__shfl_sync(0xffffffffu, static_cast<$U>(x), lane));
}
)"},
    {"shuffle", "H", "", "", R"(__device__ __forceinline__ $C shuffle($C x, int lane) {
  return $P(static_cast<unsigned short>(__shfl_sync(0xffffffffu, static_cast<unsigned>($Q(x)), lane)));
}
)"},
    {"shuffle", "E", "", "cuda_fp8.h", R"(__device__ __forceinline__ $C shuffle($C x, int lane) {
  $C r;
  r.__x = static_cast<__nv_fp8_storage_t>(__shfl_sync(0xffffffffu, static_cast<unsigned>(x.__x), lane));
  return r;
}
)"},
    // --- the elements of one 32-bit register of a matrix fragment, the first in the low bits
    {"pack_fragment", "", "", "", R"(template <typename T, typename... Rest>
__device__ __forceinline__ uint32_t pack_fragment(T first, Rest... rest) {
  const T parts[] = {first, rest...};
  uint32_t out;
  memcpy(&out, parts, sizeof(out));
  return out;
}
)"},
    // --- of two registers whose halves are pairs of bytes: the even bytes, and the odd ones; y's first where `turned`
    {"split_pairs", "", "", "",
     R"(__device__ __forceinline__ void split_pairs(uint32_t& even, uint32_t& odd, uint32_t x, uint32_t y, bool turned) {
  even = __byte_perm(x, y, turned ? 0x2064u : 0x6420u);
  odd = __byte_perm(x, y, turned ? 0x3175u : 0x7531u);
}
)"},
    // --- integers out of range
    {"saturate", "i", "", "", R"(__device__ __forceinline__ $T saturate_$S(int x) {
  return static_cast<$T>(x < $L ? $L : x > $H ? $H : x);
}
)"},
    {"saturate", "u", "", "", R"(__device__ __forceinline__ $T saturate_$S(unsigned x) {
  return static_cast<$T>(x > $H ? $H : x);
}
)"},
};
// clang-format on

bool Takes(const Helper& helper, const ScalarType* type) {
  std::string kinds = helper.kinds;
  if (type == nullptr || kinds.empty()) return type == nullptr && kinds.empty();
  std::string kind(1, static_cast<char>(type->kind));
  if (type->kind == Kind::kFloat)
    kind = type->bytes == 8 ? "fD" : type->bytes == 4 ? "fF" : type->bytes == 2 ? "H" : "E";
  return kinds.find_first_of(kind) != std::string::npos;
}

/*! \brief The helper of a key and its dtype (nullptr where it has no overloads). */
std::pair<const Helper*, const ScalarType*> FindHelper(const std::string& key) {
  size_t colon = key.find(':');
  std::string name = key.substr(0, colon);
  const ScalarType* type = colon == std::string::npos ? nullptr : &TypeOf(key.substr(colon + 1));
  for (const Helper& helper : kHelpers) {
    if (name == helper.name && Takes(helper, type)) return {&helper, type};
  }
  // narrow floats are computed in float
  if (type != nullptr && IsNarrow(*type)) return FindHelper(name + ":fp32");
  CodegenError("There is no device function " + key + ".", "");
}

void ReplaceAll(std::string* text, const std::string& what, const std::string& with) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + with.size())) {
    text->replace(at, what.size(), with);
  }
}

std::string Instance(const Helper& helper, const ScalarType* type) {
  std::string text = helper.text;
  if (type == nullptr) return text;
  bool twice = type->bytes == 8;
  ReplaceAll(&text, "$S", type->name);
  ReplaceAll(&text, "$C", type->stored);
  ReplaceAll(&text, "$T", type->compute);
  // narrower than 32 bits C++ promotes to int, whose product may overflow
  ReplaceAll(&text, "$U", twice ? "uint64_t" : "uint32_t");
  ReplaceAll(&text, "$B", std::to_string(8 * type->bytes));
  ReplaceAll(&text, "$M", twice ? "1.7976931348623157e308" : "3.4028235e38f");
  ReplaceAll(&text, "$f", twice ? "" : "f");
  bool half = std::string(type->name) == "fp16";
  ReplaceAll(&text, "$N", half ? "__float2half" : "__float2bfloat16");
  ReplaceAll(&text, "$W", half ? "__half2float" : "__bfloat162float");
  ReplaceAll(&text, "$Q", half ? "__half_as_ushort" : "__bfloat16_as_ushort");
  ReplaceAll(&text, "$P", half ? "__ushort_as_half" : "__ushort_as_bfloat16");
  if (type->kind != Kind::kFloat && type->bytes < 4) {
    ReplaceAll(&text, "$L", LimitLiteral(*type, false, TypeOf(type->carried)));
    ReplaceAll(&text, "$H", LimitLiteral(*type, true, TypeOf(type->carried)));
  }
  return text;
}

void Visit(const std::string& key, std::set<std::string>* done,
           const std::function<void(const Helper&, const ScalarType*)>& emit) {
  auto [helper, type] = FindHelper(key);
  std::string canonical = std::string(helper->name) + ":" + (type == nullptr ? "" : type->name);
  if (!done->insert(canonical).second) return;
  std::string calls = helper->calls;
  for (size_t at = 0; at < calls.size();) {
    size_t end = std::min(calls.find(' ', at), calls.size());
    std::string callee = calls.substr(at, end - at);
    if (callee.back() == '$') callee = callee.substr(0, callee.size() - 1) + type->name;
    if (type != nullptr) ReplaceAll(&callee, "$S", type->name);
    Visit(callee, done, emit);
    at = end + 1;
  }
  emit(*helper, type);
}

}  // namespace

std::string HelperText(const std::set<std::string>& keys) {
  std::string out;
  std::set<std::string> done;
  for (const std::string& key : keys) {
    Visit(key, &done, [&](const Helper& helper, const ScalarType* type) {
      if (!out.empty()) out += "\n";
      out += Instance(helper, type);
    });
  }
  return out;
}

std::set<std::string> HelperNames() {
  std::set<std::string> out;
  for (const Helper& helper : kHelpers) {
    std::string text = helper.text;
    size_t end = text.find('('), begin = text.find_last_of(" *", end) + 1;
    std::string name = text.substr(begin, end - begin);
    size_t at = name.find("$S");
    if (at == std::string::npos) {
      out.insert(name);
      continue;
    }
    for (const char* dtype : {"fp32", "fp16", "bf16", "fp8e4m3", "fp8e5m2", "int8", "int16", "uint8", "uint16"}) {
      out.insert(std::string(name).replace(at, 2, dtype));
    }
  }
  return out;
}

std::set<std::string> HelperHeaders(const std::set<std::string>& keys) {
  std::set<std::string> out, done;
  for (const std::string& key : keys) {
    Visit(key, &done, [&](const Helper& helper, const ScalarType*) {
      if (helper.header[0] != '\0') out.insert(helper.header);
    });
  }
  return out;
}

}  // namespace uir::codegen::cuda
