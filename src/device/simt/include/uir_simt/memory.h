// SPDX-License-Identifier: Apache-2.0
// Vector types, cached and streaming accesses, atomics.
#pragma once

#include "keywords.h"

#define UIR_SIMT_VECTORS(type, name)                                                          \
  struct alignas(sizeof(type) * 2) name##2 { type x, y; };                                    \
  struct alignas(sizeof(type) * 4 > 16 ? 16 : sizeof(type) * 4) name##4 { type x, y, z, w; }; \
  UIR_SIMT_INLINE name##2 make_##name##2(type x, type y) { return {x, y}; }                   \
  UIR_SIMT_INLINE name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
UIR_SIMT_VECTORS(float, float)
UIR_SIMT_VECTORS(double, double)
UIR_SIMT_VECTORS(int, int)
UIR_SIMT_VECTORS(unsigned, uint)
UIR_SIMT_VECTORS(short, short)
UIR_SIMT_VECTORS(unsigned short, ushort)
UIR_SIMT_VECTORS(signed char, char)
UIR_SIMT_VECTORS(unsigned char, uchar)
UIR_SIMT_VECTORS(long long, longlong)
UIR_SIMT_VECTORS(unsigned long long, ulonglong)
#undef UIR_SIMT_VECTORS

namespace uir_simt {

/*! \brief A load as one access of the whole type. */
template <typename T>
UIR_SIMT_INLINE T load_whole(const T* from) {
  typedef unsigned char bytes __attribute__((vector_size(sizeof(T)), may_alias));
  bytes raw = *reinterpret_cast<const bytes*>(from);
  T value;
  __builtin_memcpy(&value, &raw, sizeof(T));
  return value;
}

template <typename T>
UIR_SIMT_INLINE void store_whole(T* to, T value) {
  typedef unsigned char bytes __attribute__((vector_size(sizeof(T)), may_alias));
  bytes raw;
  __builtin_memcpy(&raw, &value, sizeof(T));
  *reinterpret_cast<bytes*>(to) = raw;
}

// The bytes of an atomic are checked by the call before, so these are not instrumented.
template <typename T>
static __attribute__((noinline, no_sanitize("thread"))) T raw_load(const T* from) {
  return *from;
}
template <typename T>
static __attribute__((noinline, no_sanitize("thread"))) void raw_store(T* to, T value) {
  *to = value;
}

}  // namespace uir_simt

#define UIR_SIMT_LOAD(name)               \
  template <typename T>                   \
  UIR_SIMT_INLINE T name(const T* from) { \
    return uir_simt::load_whole(from);    \
  }
UIR_SIMT_LOAD(__ldg)
UIR_SIMT_LOAD(__ldcg)
UIR_SIMT_LOAD(__ldca)
UIR_SIMT_LOAD(__ldcs)
UIR_SIMT_LOAD(__ldlu)
UIR_SIMT_LOAD(__ldcv)
#undef UIR_SIMT_LOAD
#define UIR_SIMT_STORE(name)                  \
  template <typename T>                       \
  UIR_SIMT_INLINE void name(T* to, T value) { \
    uir_simt::store_whole(to, value);         \
  }
UIR_SIMT_STORE(__stwb)
UIR_SIMT_STORE(__stcg)
UIR_SIMT_STORE(__stcs)
UIR_SIMT_STORE(__stwt)
#undef UIR_SIMT_STORE

#define UIR_SIMT_ATOMIC(name, expression)                            \
  template <typename T, typename V>                                  \
  UIR_SIMT_INLINE T name(T* at, V operand) {                         \
    uir_simt_atomic(at, sizeof(T));                                  \
    T old = uir_simt::raw_load(at), value = static_cast<T>(operand); \
    uir_simt::raw_store(at, static_cast<T>(expression));             \
    return old;                                                      \
  }
UIR_SIMT_ATOMIC(atomicAdd, old + value)
UIR_SIMT_ATOMIC(atomicSub, old - value)
UIR_SIMT_ATOMIC(atomicExch, value)
UIR_SIMT_ATOMIC(atomicMin, value < old ? value : old)
UIR_SIMT_ATOMIC(atomicMax, old < value ? value : old)
UIR_SIMT_ATOMIC(atomicAnd, old& value)
UIR_SIMT_ATOMIC(atomicOr, old | value)
UIR_SIMT_ATOMIC(atomicXor, old ^ value)
#undef UIR_SIMT_ATOMIC
template <typename T>
UIR_SIMT_INLINE T atomicCAS(T* at, T compare, T value) {
  uir_simt_atomic(at, sizeof(T));
  T old = uir_simt::raw_load(at);
  if (memcmp(&old, &compare, sizeof(T)) == 0) uir_simt::raw_store(at, value);
  return old;
}
