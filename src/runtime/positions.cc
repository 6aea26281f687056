// SPDX-License-Identifier: Apache-2.0
#include "runtime/positions.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace uir::runtime {

namespace ffi = tvm::ffi;

namespace {

using Numbers = std::vector<int64_t>;
using Arguments = std::vector<const DLTensor*>;
using Dict = ffi::Map<ffi::Any, ffi::Any>;
using Function = int64_t (*)(const int64_t*);

/*! A value of every operand, by the operator's name; of `runtime.position_checks.FUNCTIONS`. */
struct Operator {
  size_t operands;
  Function compute;
};

const std::map<std::string, Operator>& Operators() {
  static const auto* table = new std::map<std::string, Operator>{
      {"add", {2, [](const int64_t* x) { return x[0] + x[1]; }}},
      {"subtract", {2, [](const int64_t* x) { return x[0] - x[1]; }}},
      {"multiply", {2, [](const int64_t* x) { return x[0] * x[1]; }}},
      {"minimum", {2, [](const int64_t* x) { return std::min(x[0], x[1]); }}},
      {"maximum", {2, [](const int64_t* x) { return std::max(x[0], x[1]); }}},
      {"less", {2, [](const int64_t* x) { return static_cast<int64_t>(x[0] < x[1]); }}},
      {"where", {3, [](const int64_t* x) { return x[0] ? x[1] : x[2]; }}},
      {"astype", {1, [](const int64_t* x) { return x[0]; }}},
      {"copy", {1, [](const int64_t* x) { return x[0]; }}},
  };
  return *table;
}

Numbers NumbersOf(const ffi::Any& list) {
  Numbers out;
  for (const ffi::Any& each : list.cast<ffi::Array<ffi::Any>>()) {
    out.push_back(each.type_index() == ffi::TypeIndex::kTVMFFIBool ? each.cast<bool>() : each.cast<int64_t>());
  }
  return out;
}

int64_t Product(const Numbers& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) product *= extent;
  return product;
}

/*! A number as its type keeps it. */
int64_t Narrowed(int64_t value, DLDataType dtype) {
  if (dtype.code == kDLBool) return value != 0;
  const int unused = 64 - dtype.bits;
  if (dtype.code == kDLUInt) return static_cast<int64_t>(static_cast<uint64_t>(value) << unused >> unused);
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}

int64_t Element(const DLTensor& tensor, int64_t at) {
  const char* data = static_cast<const char*>(tensor.data) + tensor.byte_offset;
  const bool is_signed = tensor.dtype.code == kDLInt;
  switch (tensor.dtype.bits) {
    case 8:
      return is_signed ? reinterpret_cast<const int8_t*>(data)[at] : reinterpret_cast<const uint8_t*>(data)[at];
    case 16:
      return is_signed ? reinterpret_cast<const int16_t*>(data)[at] : reinterpret_cast<const uint16_t*>(data)[at];
    case 32:
      return is_signed ? reinterpret_cast<const int32_t*>(data)[at] : reinterpret_cast<const uint32_t*>(data)[at];
    default:
      return reinterpret_cast<const int64_t*>(data)[at];
  }
}

}  // namespace

class IndexNode {
 public:
  /*! Null where something of it is not known here. */
  static std::unique_ptr<IndexNode> Read(const Dict& given) {
    auto node = std::make_unique<IndexNode>();
    const DLDataType dtype = ffi::StringToDLDataType(given["dtype"].cast<ffi::String>());
    const bool whole = dtype.code == kDLInt || dtype.code == kDLUInt || dtype.code == kDLBool;
    if (!whole || dtype.lanes != 1 || dtype.bits < 8) return nullptr;
    node->dtype_ = dtype;
    node->size_ = given["size"].cast<int64_t>();
    const auto view = given["view"].cast<ffi::Array<ffi::Any>>();
    node->extents_ = NumbersOf(view[0]), node->strides_ = NumbersOf(view[1]), node->shape_ = NumbersOf(view[3]);
    node->offset_ = view[2].cast<int64_t>();
    if (Product(node->extents_) != Product(node->shape_)) return nullptr;
    if (given.count("argument")) {
      node->argument_ = static_cast<int>(given["argument"].cast<int64_t>());
    } else if (given.count("constant")) {
      node->constant_ = NumbersOf(given["constant"]);
    } else {
      const auto found = Operators().find(given["op"].cast<ffi::String>());
      const auto operands = given["operands"].cast<ffi::Array<ffi::Any>>();
      if (found == Operators().end() || operands.size() != found->second.operands) return nullptr;
      node->compute_ = found->second.compute;
      for (const ffi::Any& each : operands) {
        node->operands_.push_back(Read(each.cast<Dict>()));
        if (!node->operands_.back()) return nullptr;
      }
    }
    return node;
  }

  /*! The numbers in the order of the shape. */
  Numbers Values(const Arguments& arguments) const {
    const Numbers base = Base(arguments);
    Numbers out;
    const int64_t count = Product(extents_);
    out.reserve(count);
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = offset_, rest = i;
      for (size_t d = extents_.size(); d-- > 0; rest /= extents_[d]) at += rest % extents_[d] * strides_[d];
      out.push_back(base.at(at));
    }
    return out;
  }

 private:
  /*! What is viewed, in its own order. */
  Numbers Base(const Arguments& arguments) const {
    Numbers out;
    if (!compute_) {
      if (argument_ < 0) {
        out = constant_;
      } else {
        for (int64_t i = 0; i < size_; ++i) out.push_back(Element(*arguments.at(argument_), i));
      }
      for (int64_t& value : out) value = Narrowed(value, dtype_);
      return out;
    }
    Numbers shape;
    std::vector<Numbers> values;
    for (const auto& each : operands_) {
      values.push_back(each->Values(arguments));
      shape.resize(std::max(shape.size(), each->shape_.size()), 1);
    }
    for (const auto& each : operands_) {
      const size_t skipped = shape.size() - each->shape_.size();
      for (size_t d = 0; d < each->shape_.size(); ++d) {
        int64_t& extent = shape[skipped + d];
        extent = extent == 1 ? each->shape_[d] : extent;
      }
    }
    for (int64_t i = 0; i < Product(shape); ++i) {
      int64_t given[3] = {};
      for (size_t k = 0; k < values.size(); ++k) given[k] = values[k].at(Broadcast(i, shape, operands_[k]->shape_));
      out.push_back(Narrowed(compute_(given), dtype_));
    }
    return out;
  }

  /*! Where an element of `shape` lies in a tensor that is broadcast to it. */
  static int64_t Broadcast(int64_t element, const Numbers& shape, const Numbers& own) {
    int64_t at = 0, step = 1;
    const size_t skipped = shape.size() - own.size();
    for (size_t d = shape.size(); d-- > 0; element /= shape[d]) {
      if (d < skipped) continue;
      const int64_t extent = own[d - skipped];
      if (extent != 1) at += element % shape[d] * step;
      step *= extent;
    }
    return at;
  }

  DLDataType dtype_{};
  int64_t size_ = 0, offset_ = 0;
  Numbers extents_, strides_, shape_, constant_;
  int argument_ = -1;
  Function compute_ = nullptr;
  std::vector<std::unique_ptr<IndexNode>> operands_;
};

struct Positions::Row {
  int64_t length;
  std::unique_ptr<IndexNode> index;
};

Positions::Positions() = default;
Positions::Positions(Positions&&) noexcept = default;
Positions::~Positions() = default;

bool Positions::Read(const ffi::Any& rows) {
  for (const ffi::Any& each : rows.cast<ffi::Array<ffi::Any>>()) {
    const Dict row = each.cast<Dict>();
    auto index = IndexNode::Read(row["index"].cast<Dict>());
    if (!index) return false;
    rows_.push_back({row["length"].cast<int64_t>(), std::move(index)});
  }
  return true;
}

bool Positions::Hold(const Arguments& arguments) const {
  for (const Row& row : rows_) {
    for (int64_t position : row.index->Values(arguments)) {
      if (position < -row.length || position >= row.length) return false;
    }
  }
  return true;
}

}  // namespace uir::runtime
