// SPDX-License-Identifier: Apache-2.0
// Quasi-affine expressions evaluated on arrays of their variables' values.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string_view>

#include "igraph/space.h"

namespace uir {

namespace {

/*! \brief Values of one variable, and what holds them all. */
struct Column {
  std::string name;
  const int64_t* data;
  Range range;
};

/*! \brief Elements that are worked on together: what is in between stays in the first cache. */
constexpr int64_t kTogether = 1024;

/*! \brief values[i] = floor(values[i] / k) or values[i] mod k, for values of a range. */
void Divide(int64_t* values, int64_t count, Range range, int64_t k, bool quotient) {
  if (k > 1 && k <= UINT32_MAX && range.Within({0, UINT32_MAX})) {
    // one product: the high half of ceil(2^64 / k) * n is n / k for 32-bit n and k (Lemire, Kaser and Kurz, 2019)
    const uint64_t reciprocal = UINT64_MAX / static_cast<uint64_t>(k) + 1;
    for (int64_t i = 0; i < count; ++i) {
      int64_t whole = static_cast<int64_t>((static_cast<unsigned __int128>(reciprocal) * values[i]) >> 64);
      values[i] = quotient ? whole : values[i] - whole * k;
    }
  } else if (quotient) {
    for (int64_t i = 0; i < count; ++i) values[i] = FloorDivInt(values[i], k);
  } else {
    for (int64_t i = 0; i < count; ++i) values[i] = FloorModInt(values[i], k);
  }
}

class Columns {
 public:
  void Add(std::string name, const int64_t* data, int64_t count) {
    // the bits in use bound the values, in half the time that the least and the greatest take
    int64_t bits = 0, signs = 0;
    for (int64_t i = 0; i < count; ++i) {
      bits |= data[i] ^ (data[i] >> 63);
      signs |= data[i];
    }
    for (int shift : {1, 2, 4, 8, 16, 32}) bits |= bits >> shift;
    Range range{signs < 0 ? -bits - 1 : 0, bits};
    space_.Bind(name, {range, 1});
    columns_.push_back({std::move(name), data, range});
  }

  void Evaluate(const Affine& expr, int64_t count, int64_t* out) const {
    // what surely stays within 64 bits needs no check of each element
    bool checked = space_.MagnitudeOf(expr) == INT64_MAX;
    for (int64_t at = 0; at < count; at += kTogether) {
      int64_t few = std::min(kTogether, count - at);
      if (checked) {
        Piece<true>(expr, at, few, out + at);
      } else {
        Piece<false>(expr, at, few, out + at);
      }
    }
  }

 private:
  const int64_t* Of(const ffi::String& name) const {
    for (const Column& column : columns_) {
      if (column.name == std::string_view(name.data(), name.size())) return column.data;
    }
    TVM_FFI_THROW(ValueError) << "no value for the variable " << name;
    __builtin_unreachable();
  }

  template <bool kChecked>
  void Piece(const Affine& expr, int64_t at, int64_t count, int64_t* out) const {
    std::fill_n(out, count, expr->constant);
    for (const Term& term : expr->terms) {
      int64_t inner[kTogether];
      const int64_t* atom = inner;
      const int64_t k = term->divisor, c = term->coeff;
      if (term->kind == "var") {
        atom = Of(term->var) + at;
      } else {
        Affine argument = InnerOf(term);
        Piece<kChecked>(argument, at, count, inner);
        if (term->kind == "product") {
          const int64_t* factor = Of(term->var) + at;
          for (int64_t i = 0; i < count; ++i) {
            inner[i] = kChecked ? CheckedMul(factor[i], inner[i]) : factor[i] * inner[i];
          }
        } else {
          Range range = kChecked ? Range{INT64_MIN, INT64_MAX} : space_.RangeOf(argument);
          Divide(inner, count, range, k, term->kind == "floordiv");
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        out[i] = kChecked ? CheckedAdd(out[i], CheckedMul(c, atom[i])) : out[i] + c * atom[i];
      }
    }
  }

  std::vector<Column> columns_;
  Space space_;
};

int64_t* DataOf(const ffi::TensorView& tensor) {
  DLDataType type = tensor.dtype();
  TVM_FFI_CHECK(type.code == kDLInt && type.bits == 64 && tensor.IsContiguous(), TypeError)
      << "values of a variable are a dense array of int64";
  return static_cast<int64_t*>(tensor.data_ptr());
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  // (expression, result, name, values, name, values, ...), all arrays of one length
  refl::GlobalDef().def_packed("uir.affine.columns", [](ffi::PackedArgs args, ffi::Any*) {
    auto expr = args[0].cast<Affine>();
    auto result = args[1].cast<ffi::TensorView>();
    int64_t count = result.numel();
    if (count == 0) return;
    Columns columns;
    for (int i = 2; i + 1 < args.size(); i += 2) {
      auto values = args[i + 1].cast<ffi::TensorView>();
      TVM_FFI_CHECK(values.numel() == count, ValueError) << "arrays of different lengths";
      columns.Add(args[i].cast<std::string>(), DataOf(values), count);
    }
    columns.Evaluate(expr, count, DataOf(result));
  });
}

}  // namespace uir
