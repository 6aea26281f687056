// SPDX-License-Identifier: Apache-2.0
// Elementwise programs: what an iOp does to one element, as a list of vector functions.
//
// An iOp that is elementwise is a program over its operands: `exp` of fp32 is one step, `sigmoid` of fp16 casts up,
// computes in float and casts down.  A device's printer prints it over whole tiles; where its vector functions differ
// from those named here, it derives a class of its own that composes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/api.h"

namespace uir::codegen::tiles {

/*! \brief The result of a step: an index into the program. */
struct Value {
  int id = -1;
};

/*! \brief One vector function, or a view of what another one made. */
struct Step {
  enum class Form {
    kInput,    // an operand of the iOp
    kView,     // the same bytes as another dtype
    kFill,     // Duplicate(dst, literal)
    kIndex,    // 0, 1, ...: a device makes them by functions of its own
    kPlain,    // api(dst, args...)
    kScalar,   // api(dst, arg, literal)
    kCast,     // Cast(dst, arg, mode)
    kCompare,  // Compare(bits, a, b, mode) or CompareScalar(bits, a, literal, mode)
    kSelect,   // Select(dst, bits, a, b) or Select(dst, bits, a, literal)
    kGather,   // Gather(dst, words, offsets, literal)
    kPeak,     // the largest of all elements of int32 that are below 2^24: a buffer of its own, one value counts
    kFarRest,  // args: x, what is left of it without turns, the peak; that again, of a large x too, for `mode` sin or
               // cos
  };
  Form form = Form::kPlain;
  std::string api;
  /*! \brief dtype of the result; "bits" of a comparison: one bit per element. */
  std::string dtype;
  std::vector<int> args;
  std::string literal;
  std::string mode;
  /*! \brief Of a function of several operations: a literal for each operand that is a number, "" for one of `args`. */
  std::vector<std::string> numbers;
  /*! \brief Stored elements per element of the iOp: a 32-bit number seen as 16-bit words has 2. */
  int per = 1;
  /*! \brief Elements of the iOp in one stored element: bytes seen as 16-bit words have 2; the last may be half used. */
  int pack = 1;
  /*! \brief Of an input: which operand. */
  int operand = 0;
  /*! \brief One element for each row: a column, which lines with other operands repeat along the row. */
  bool column = false;

  /*! \brief Whether it does the same to the same arguments. */
  bool Same(const Step& other) const {
    return form == other.form && api == other.api && dtype == other.dtype && args == other.args &&
           literal == other.literal && mode == other.mode && numbers == other.numbers && per == other.per &&
           pack == other.pack && operand == other.operand && column == other.column;
  }
};

/*! \brief Builds a program; values are made in the order in which they are computed. */
class Program {
 public:
  virtual ~Program() = default;

  /*! \brief An operand of the iOp by its number. */
  Value Input(int operand, const std::string& dtype);

  /*! \brief The same bits as another dtype (fp32 as int32, or as int16 words). */
  Value View(Value x, const std::string& dtype);
  /*! \brief The same number everywhere; `per`: how many to an element of the iOp. */
  Value Fill(const std::string& dtype, const std::string& literal, int per = 1);
  /*! \brief 0, 1, 2, ... from the start of what a chunk of the iOp works on, `per` of them to an element; int32. */
  Value Index(int per);
  /*! \brief From where a chunk of `words` begins, the word at byte `base` + offset; as many as there are offsets. */
  Value Gather(Value words, Value offsets, int64_t base);
  Value Fill(double value) { return Fill("fp32", ElementLiteral(value, "float")); }
  virtual Value Apply(const std::string& api, Value x);
  virtual Value Apply(const std::string& api, Value x, Value y);
  /*! \brief A function of a vector and a number of the vector's dtype. */
  virtual Value Scalar(const std::string& api, Value x, double number);
  Value ScalarInt(const std::string& api, Value x, int64_t number);
  virtual Value Cast(Value x, const std::string& dtype, const std::string& mode);
  /*! \brief Bits: 1 where the comparison (EQ NE GE LE GT LT) holds. */
  virtual Value Compare(const std::string& mode, Value x, Value y);
  virtual Value Compare(const std::string& mode, Value x, double number);
  /*! \brief x where the bit is 1, else y; any 16-bit or 32-bit numbers. */
  virtual Value Select(Value bits, Value x, Value y);
  virtual Value Select(Value bits, Value x, double number);

  // what formulas are made of
  Value Add(Value x, Value y) { return Apply("Add", x, y); }
  Value Sub(Value x, Value y) { return Apply("Sub", x, y); }
  Value Mul(Value x, Value y) { return Apply("Mul", x, y); }
  Value Div(Value x, Value y) { return Apply("Div", x, y); }
  Value Max(Value x, Value y) { return Apply("Max", x, y); }
  Value Min(Value x, Value y) { return Apply("Min", x, y); }
  Value Adds(Value x, double c) { return Scalar("Adds", x, c); }
  Value Muls(Value x, double c) { return Scalar("Muls", x, c); }
  Value Maxs(Value x, double c) { return Scalar("Maxs", x, c); }
  Value Mins(Value x, double c) { return Scalar("Mins", x, c); }
  /*! \brief The whole number by a rounding mode, still a float. */
  Value Whole(Value x, const std::string& mode) { return Cast(x, "fp32", mode); }
  Value Shl(Value x, int bits) { return ScalarInt("ShiftLeft", x, bits); }
  Value Shr(Value x, int bits) { return ScalarInt("ShiftRight", x, bits); }
  /*! \brief The same value in another place. */
  virtual Value Copy(Value x);
  /*! \brief And, Or, Not of the bits of numbers. */
  virtual Value Bits(const std::string& api, Value x, Value y);
  Value BitNot(Value x);
  /*! \brief 2^n x for whole floats n with |n| <= 252. */
  virtual Value TimesPowerOfTwo(Value x, Value n);
  /*! \brief x = m 2^(e - 127) of a positive normal x, m in [1, 2), e a float. */
  virtual void SplitFloat(Value x, Value* e, Value* m);
  //! \brief `rest`, which is right where |x| < 2^22, with the elements of larger ones put right: x less whole half
  //! turns (for "cos": x + pi / 2), with the sign of an odd number of them.
  //! \param peak The largest exponent (`Peak`), by which a device sees whether there is such an x.
  Value FarRest(const std::string& mode, Value x, Value rest, Value peak);
  /*! \brief The largest biased exponent of all elements. */
  Value Peak(Value x);
  /*! \brief c[0] + c[1] x + c[2] x^2 + ... by Horner's rule. */
  Value Polynomial(Value x, const std::vector<double>& c);

  /*! \brief Whether elements outside of the valid box must not be computed: what they hold would be looked at. */
  bool Looks() const;
  const std::string& DtypeOf(Value x) const { return steps_[x.id].dtype; }
  const std::vector<Step>& steps() const { return steps_; }

 protected:
  Value Append(Step step);
  /*! \brief A step that gives what its operand is: dtype, elements. */
  Step On(Value x, Step::Form form, const std::string& api) const;
  Value Filled(const std::string& api, const std::string& dtype, const std::string& literal, int per);

  std::vector<Step> steps_;
};

}  // namespace uir::codegen::tiles
