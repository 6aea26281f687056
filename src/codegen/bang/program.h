// SPDX-License-Identifier: Apache-2.0
// Elementwise programs of BANG C: what its vector functions are called, and what they must compose.
//
// Steps are named without `__bang_`.  A truth is a fp32 number, 1 or 0.  Vectors hold fp32 and fp16; bits are those of
// int32 and int16; other dtypes are converted.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "codegen/api.h"
#include "codegen/bang/interval.h"
#include "codegen/tiles/program.h"

namespace uir::codegen::bang {

using tiles::Step;
using tiles::Value;

/*! \brief A program of the functions of one platform. */
class Program : public tiles::Program {
 public:
  /*! \param narrow Whether results end in 16 bits: functions may have errors that these do not show. */
  //! \param pairs Whether bytes may be worked on in pairs: elements come in even numbers.
  explicit Program(Platform platform, bool narrow = false, bool pairs = false)
      : platform_(std::move(platform)), narrow_(narrow), pairs_(pairs) {}

  Value Apply(const std::string& api, Value x) override;
  Value Apply(const std::string& api, Value x, Value y) override;
  Value Scalar(const std::string& api, Value x, double number) override;
  Value Cast(Value x, const std::string& dtype, const std::string& mode) override;
  Value Compare(const std::string& mode, Value x, Value y) override;
  Value Compare(const std::string& mode, Value x, double number) override;
  Value Select(Value bits, Value x, Value y) override;
  Value Select(Value bits, Value x, double number) override;
  Value Copy(Value x) override;
  Value Bits(const std::string& api, Value x, Value y) override;
  Value TimesPowerOfTwo(Value x, Value n) override;
  void SplitFloat(Value x, Value* e, Value* m) override;

  /*! \brief An operand of one element for each row. */
  Value Column(int operand, const std::string& dtype);
  bool IsColumn(Value x) const { return steps_[x.id].column; }
  bool narrow() const { return narrow_; }

  /*! \brief Notes that a value is what an operation of the model gives, whose rounding is the model's own. */
  void Given(Value x) { given_.insert(x.id); }

  /*! \brief The number that a value is multiplied by, and what it is a multiple of in its place; 1 for others. */
  double Unscaled(Value* x) const;

  //! \brief Operations of fp32 that only the next one uses become one function with it (fuse.cc).
  //! \param result What is wanted of the program.
  //! \param apart Operands that the last step may not have as second or third of a fused function.
  //! \return The result, which may have become another step.
  Value Fuse(Value result, const std::set<int>& apart);

  //! \brief The result so that the last function may write it to the target, by the vendor's rules of what may lie
  //! there.
  //! \param shared Operands that may lie where the target does.
  Value Settle(Value result, const std::set<int>& shared);
  /*! \brief Notes what an operand holds, or a formula gives, and says what a value is then; integers are not followed.
   */
  void Know(Value x, const Interval& interval) { intervals_[x.id] = interval; }
  Interval IntervalOf(Value x) const;

  /*! \brief A vector function with one name: `__bang_<api>(dst, args...)`. */
  Value Plain(const std::string& api, const std::string& dtype, std::initializer_list<Value> args);
  /*! \brief `__bang_<api>(dst, x, literal)`. */
  Value WithNumber(const std::string& api, Value x, const std::string& literal);
  /*! \brief The nearest whole number of |x| < 2^22, halves to even. */
  Value Nearest(Value x);
  //! \brief The bits of a uint8 under a mask, shifted to the right by so many; bytes are worked on in pairs. Of an int8
  //! under a mask without its sign.
  //! \note As fp32 it takes a mask, a conversion and, where it is shifted or may have its highest bit, one operation.
  Value ByteBits(Value x, int64_t mask, int shift);
  /*! \brief Any dtype of up to 32 bits as fp32 (of an int32 the nearest). */
  Value Float(Value x);
  /*! \brief An int32 that a float holds, as fp32. */
  Value FloatOfWhole(Value x);
  /*! \brief A whole fp32 number within a dtype's range, or any for floats, as that dtype. */
  Value Stored(Value x, const std::string& dtype);

 private:
  /*! \brief A fp32 number within int32's range as the whole one that a rounding mode gives. */
  Value Rounded(Value x, const std::string& mode);
  /*! \brief A conversion to fp32 by a function of a name. */
  Value Widened(Value x, const std::string& api);
  /*! \brief A uint8 shifted to the right, as fp32, by way of pairs of bytes; `highest`: may it have its highest bit. */
  Value FloatOfByte(Value x, bool highest, int shift);
  /*! \brief A quotient where the device's function of two vectors leaves those by zero undefined. */
  Value Quotient(Value x, Value y);
  /*! \brief bf16 as fp32 and back by the bits, where there are no conversions; modes as in Cast. */
  Value FloatOfBfloat(Value x);
  Value BfloatOf(Value x, const std::string& mode);
  /*! \brief All bits of a word of `bytes` where the truth is 1, none where it is 0. */
  Value Mask(Value truth, int64_t bytes);

  /*! \brief Steps that are operations of the model. */
  std::set<int> given_;
  std::map<int, Interval> intervals_;
  Platform platform_;
  bool narrow_, pairs_;
  /*! \brief Bytes whose fp32 is known another way, and that. */
  std::map<int, Value> floats_;
  std::map<std::pair<int, int64_t>, Value> masks_;
};

//! \brief e^x by a power of two that has few bits, and a short series for the rest: error within 3 ULP.
//! In narrow programs 2^(x log2 e): relative error up to (1.25 |x| + 2) 2^-24.
Value Exp(Program& p, Value x);
//! \brief The error function as 2 / (1 + 2^(-x q(x^2))) - 1, absolute error below 3e-7 (narrow: 4e-6): for what adds a
//! constant to it, where errors relative to small results do not matter.
Value CentredErf(Program& p, Value x);

/*! \brief A unary or binary function of fp32: this device's own forms, else those of tiles/functions.h. */
Value UnaryOf(Program& p, const std::string& name, Value x, double param);
Value BinaryOf(Program& p, const std::string& name, Value x, Value y);

}  // namespace uir::codegen::bang
