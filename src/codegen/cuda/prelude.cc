// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/prelude.h"

#include <tvm/ffi/error.h>

#include <vector>

#include "codegen/cuda/helpers.h"
#include "codegen/cuda/intrinsics.h"
#include "codegen/cuda/scalar.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief A template of the emitted text; the host model's headers define the same names with checks. */
struct Item {
  std::string name;
  std::vector<std::string> calls;
  std::string text;
  /*! \brief Whether it is plain C++, that the host model compiles as it is. */
  bool plain = false;
};

const std::vector<Item>& Items() {
  static const std::vector<Item> items = {
      {"reg", {}, "// N values of a lane, in registers.\ntemplate <typename T, int N>\nusing reg = T[N];\n"},
      {"shared_at",
       {},
       "// N values of shared memory, from a byte on.\n"
       "template <typename T, int N>\n"
       "__device__ __forceinline__ T* shared_at(unsigned char* smem, int byte_offset) {\n"
       "  return reinterpret_cast<T*>(smem + byte_offset);\n"
       "}\n"},
      {"vec",
       {},
       "// N neighbouring values, moved by one instruction.\n"
       "template <typename T, int N>\nstruct alignas(sizeof(T) * N) vec {\n  T v[N];\n};\n"},
      {"word",
       {},
       "// The machine word of so many bytes.\n"
       "template <int BYTES> struct word;\n"
       "template <> struct word<1> { using type = unsigned char; };\n"
       "template <> struct word<2> { using type = unsigned short; };\n"
       "template <> struct word<4> { using type = unsigned; };\n"
       "template <> struct word<8> { using type = uint2; };\n"
       "template <> struct word<16> { using type = uint4; };\n"
       "template <typename TO, typename FROM>\n"
       "__device__ __forceinline__ TO same_bits(const FROM& from) {\n"
       "  static_assert(sizeof(TO) == sizeof(FROM), \"same size\");\n"
       "  TO to;\n"
       "  __builtin_memcpy(&to, &from, sizeof(to));\n"
       "  return to;\n"
       "}\n"},
      {"load_vec",
       {"vec", "word"},
       "template <typename T, int N>\n"
       "__device__ __forceinline__ vec<T, N> load_vec(const T* from) {\n"
       "  using W = typename word<sizeof(T) * N>::type;\n"
       "  return same_bits<vec<T, N>>(*reinterpret_cast<const W*>(from));\n"
       "}\n"},
      {"store_vec",
       {"vec", "word"},
       "template <typename T, int N>\n"
       "__device__ __forceinline__ void store_vec(T* to, const vec<T, N>& value) {\n"
       "  using W = typename word<sizeof(T) * N>::type;\n"
       "  *reinterpret_cast<W*>(to) = same_bits<W>(value);\n"
       "}\n"},
      {"load_vec_stream",
       {"vec", "word"},
       "// The same of data that is read once: first to leave the caches.\n"
       "template <typename T, int N>\n"
       "__device__ __forceinline__ vec<T, N> load_vec_stream(const T* from) {\n"
       "  using W = typename word<sizeof(T) * N>::type;\n"
       "  return same_bits<vec<T, N>>(__ldcs(reinterpret_cast<const W*>(from)));\n"
       "}\n"},
      {"store_vec_stream",
       {"vec", "word"},
       "// The same of data that is not read soon: first to leave the caches.\n"
       "template <typename T, int N>\n"
       "__device__ __forceinline__ void store_vec_stream(T* to, const vec<T, N>& value) {\n"
       "  using W = typename word<sizeof(T) * N>::type;\n"
       "  __stcs(reinterpret_cast<W*>(to), same_bits<W>(value));\n"
       "}\n"},
      {"swizzled",
       {},
       "// Where element `index` of a tile lies: from one LINE of bytes to the next the chunks of every 128 bytes "
       "change\n"
       "// places, by STEP bytes, so that lanes which read below one another meet no bank twice.\n"
       "template <int LINE, int PLACES, int STEP, int BYTES>\n"
       "__device__ __forceinline__ int swizzled(int index) {\n"
       "  const int byte = index * BYTES;\n"
       "  return (byte ^ (byte / LINE % PLACES * STEP)) / BYTES;\n"
       "}\n",
       true},
      {"in_atoms",
       {},
       "// The same of a tile with longer lines whose products four warps make together: every 8 lines are atoms of "
       "128 "
       "bytes a\n"
       "// line, one after the other, in which the 16-byte chunks change places from line to line.\n"
       "template <int PITCH, int BYTES>\n"
       "__device__ __forceinline__ int in_atoms(int index) {\n"
       "  const int byte = index * BYTES, line = byte / PITCH % 8, at = byte % PITCH;\n"
       "  return (byte / (8 * PITCH) * (8 * PITCH) + at / 128 * 1024 + line * 128 + (at % 128 ^ line * 16)) / BYTES;\n"
       "}\n",
       true},
  };
  return items;
}

const Item& FindItem(const std::string& name) {
  for (const Item& item : Items()) {
    if (item.name == name) return item;
  }
  TVM_FFI_THROW(InternalError) << "the prelude has no item '" << name << "'";
}

}  // namespace

void Needs::Core(const std::string& name) {
  for (const std::string& callee : FindItem(name).calls) Core(callee);
  core_.insert(name);
}

void Needs::Dtype(const std::string& dtype) {
  const ScalarType& type = TypeOf(dtype);
  if (type.header[0] != '\0') includes_.insert(type.header);
  for (const std::string& key : ConversionHelpers(type)) helpers_.insert(key);
}

std::string Needs::Text() const {
  std::set<std::string> headers = includes_;
  for (const std::string& header : HelperHeaders(helpers_)) headers.insert(header);
  // NVRTC has no standard headers, but knows these types
  std::string text =
      "#ifndef __CUDACC_RTC__\n#include <cstdint>\n#else\n"
      "using int8_t = signed char;\nusing uint8_t = unsigned char;\nusing int16_t = short;\n"
      "using uint16_t = unsigned short;\nusing int32_t = int;\nusing uint32_t = unsigned;\n"
      "using int64_t = long long;\nusing uint64_t = unsigned long long;\n#endif\n";
  for (const std::string& header : headers) text += "#include <" + header + ">\n";
  std::string device;
  std::string plain;
  for (const Item& item : Items()) {
    if (core_.count(item.name)) (item.plain ? plain : device) += "\n" + item.text;
  }
  if (!intrinsics_.empty()) device += "\n" + IntrinsicsText(intrinsics_);
  // the host model defines these itself, with checks
  if (!device.empty()) text += "\n#ifndef UIR_SIMT" + device + "#endif  // UIR_SIMT\n";
  std::string helpers = HelperText(helpers_);
  return text + plain + (helpers.empty() ? "" : "\n") + helpers;
}

}  // namespace uir::codegen::cuda
