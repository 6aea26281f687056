// SPDX-License-Identifier: Apache-2.0
// What all instructions share: operands with the bytes that they touch, checks, order, time.
//
// An instruction says what it reads and writes, and `Begin` judges it: where its operands lie, how they are aligned,
// and what they are not ordered with. It answers whether the instruction may take effect. `End` counts its time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/ascendc/machine.h"

namespace uir::ascendc {

/*! \brief A tensor that an instruction reads or writes. */
struct Operand {
  UirTensor tensor;
  const char* role;
  bool write;
  Ranges ranges;
  /*! \brief Its first byte, and the known bits of it; of global memory the latter is null. */
  uint8_t* data{nullptr};
  uint8_t* known{nullptr};
  engine::Allocation* allocation{nullptr};
};

/*! \brief One instruction on its way. */
class Instruction {
 public:
  Instruction(const char* name, uint32_t pipe, int line) : name_(name), pipe_(pipe), line_(line) {
    operands_.reserve(8);
  }

  /*! \brief An operand; the reference holds until the instruction ends. At most eight. */
  Operand& Reads(const UirTensor& tensor, const char* role) { return Add(tensor, role, false); }
  Operand& Writes(const UirTensor& tensor, const char* role) { return Add(tensor, role, true); }

  /*! \brief Report a fault of this instruction; it takes no effect then. */
  void Fault(const char* kind, const std::string& what, uint32_t memory = kUirMemories);
  /*! \brief A fault unless the condition holds. */
  void Need(bool condition, const char* kind, const std::string& what) {
    if (!condition) Fault(kind, what);
  }
  /*! \brief A fault unless the condition holds; `what` makes its text, which most instructions never need. */
  template <typename Text>
  auto Need(bool condition, const char* kind, const Text& what) -> decltype(static_cast<void>(what())) {
    if (!condition) Fault(kind, what());
  }
  bool faulty() const { return faulty_; }

  /*! \brief Judge the operands: `alignment` in bytes is of those in the core. Whether the instruction may go on. */
  bool Begin(int64_t alignment);
  /*! \brief An operand whose ranges are known only now (of a gather) is judged at the same instruction. */
  bool Touch(Operand* operand);
  /*! \brief Count its time: cycles in which the pipe does nothing else, and after those until it has taken effect. */
  void End(double cycles, double latency, int64_t bytes = 0);
  /*! \brief Count the time of a transfer with global memory. */
  void EndTransfer(const Operand& global, int64_t rows, bool write);

  /*! \brief A fault where a tensor of which nothing is touched begins behind its end: to index it so is one. */
  void NeedTensor(const UirTensor& tensor, const char* role);

  std::string name() const { return name_; }
  uint32_t pipe() const { return pipe_; }
  int line() const { return line_; }

 private:
  Operand& Add(const UirTensor& tensor, const char* role, bool write);
  bool Place(Operand* operand, int64_t alignment);
  bool PlaceLocal(Operand* operand, int64_t alignment);
  bool PlaceGlobal(Operand* operand);
  void Judge(const Operand& operand);
  double Start();

  const char* name_;
  uint32_t pipe_;
  int line_;
  bool faulty_{false};
  uint64_t epoch_{0};
  std::vector<Operand> operands_;
};

}  // namespace uir::ascendc
