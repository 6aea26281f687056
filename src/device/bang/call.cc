// SPDX-License-Identifier: Apache-2.0
#include "device/bang/call.h"

#include <set>
#include <string>
#include <unordered_map>

namespace uir::bang {

namespace {

constexpr int64_t kFirstBfloat16 = 500;
constexpr int64_t kFirstFree = 300;  // from here on addresses and counts of vectors are free

/*! \brief Functions that came with 322, by the requirements in the vendor's header; so did conversions to `int`. */
const std::set<std::string>& Later() {
  static const auto* names =
      new std::set<std::string>{"fusion", "sqrt", "rsqrt", "recip",  "pow2",   "log",         "log2",       "sin",
                                "cos",    "div",  "floor", "argmax", "argmin", "nan_maximum", "nan_minimum"};
  return *names;
}

/*! \brief Whether an architecture has a function. */
bool Has(const std::string& name, int64_t arch) {
  if (name == "div" && arch == 372) return false;
  bool later = name.rfind("float2int", 0) == 0 || name.find("bfloat16") != std::string::npos;
  return arch >= 322 || !(later || Later().count(name));
}

/*! \brief Earlier architectures work on whole 128 bytes. */
void CheckBytes(int64_t bytes, Instruction* instruction) {
  if (machine.device.arch >= kFirstFree) return;
  instruction->Need(bytes % 128 == 0, "size",
                    std::to_string(bytes) + " bytes are no multiple of 128, as architecture " +
                        std::to_string(machine.device.arch) + " needs");
}

/*! \brief What is known of a function by its name alone. */
struct Named {
  Handler handler{nullptr};
  /*! \brief Conversions of bfloat16_t are older than arithmetic of it. */
  bool converts{false};
  /*! \brief What costs are listed by: the name without its form. */
  std::string family;
};

Named NamedOf(const std::string& name) {
  Named named;
  for (auto family :
       {ElementwiseOf, FillOf, ConversionHandlerOf, LayoutOf, MatmulOf, ReduceOf, SelectOf, ApproximateOf}) {
    if (!named.handler) named.handler = family(name);
  }
  named.converts = name.find("bfloat16") != std::string::npos;
  const std::string cycle = "cycle_";
  named.family = name.rfind(cycle, 0) == 0 ? name.substr(cycle.size()) : name;
  size_t scalar = named.family.rfind("_scalar");
  if (scalar != std::string::npos) named.family.erase(scalar);
  return named;
}

/*! \brief The same, of names looked up once. */
const Named& Known(const std::string& name) {
  static auto* known = new std::unordered_map<std::string, Named>();
  auto found = known->find(name);
  return found != known->end() ? found->second : known->emplace(name, NamedOf(name)).first->second;
}

void CheckArchitecture(const UirBangCall& call, const Named& named, Instruction* instruction) {
  int64_t arch = machine.device.arch;
  auto where = [&] { return " on architecture " + std::to_string(arch); };
  instruction->Need(Has(call.name, arch), "arch", [&] { return "there is no such function" + where(); });
  for (int i = 0; i < call.operands; ++i) {
    const UirBangOperand& operand = call.operand[i];
    instruction->Need(operand.type != kBangBfloat16 || arch >= kFirstBfloat16 || named.converts, "arch",
                      [&] { return "there is no arithmetic of bfloat16_t" + where(); });
    if (operand.scalar || arch >= kFirstFree) continue;
    auto offset = static_cast<const uint8_t*>(operand.address) - machine.sections[kBangNram].begin;
    instruction->Need(offset % 64 == 0, "misaligned",
                      [&] { return "operands begin at multiples of 64 bytes" + where(); });
  }
}

double RunCall(const UirBangCall& call, int line) {
  if (!machine.core || machine.core->memory_core) return 0;  // a memory core has no vector unit
  Instruction instruction("__bang_", call.name, kBangCompute, line);
  double value = 0;
  const Named& named = Known(call.name);
  if (!named.handler) {
    instruction.Fault("function", "the model does not have it");
    return 0;
  }
  CheckArchitecture(call, named, &instruction);
  if (instruction.faulty()) return 0;
  named.handler({call, instruction, &value, named.family});
  return value;
}

}  // namespace

bool Given::Positive(int64_t count, const char* what) const {
  instruction.Need(count > 0, "size", [&] { return std::string(what) + " is " + std::to_string(count); });
  return count > 0;
}

Operand& Given::Source(int i, const char* role, int64_t bytes) const {
  CheckBytes(bytes, &instruction);
  Operand& operand = instruction.Reads(of(i).address, kBangNram, role);
  operand.ranges.Add(0, bytes);
  return operand;
}

Operand& Given::Target(int64_t bytes) const {
  Operand& operand = instruction.Writes(of(0).address, kBangNram, "target");
  operand.ranges.Add(0, bytes);
  return operand;
}

void Given::NeedApart(const Operand& target, const Operand& source, bool same) const {
  const uint8_t *begin = source.data + source.ranges.Begin(), *end = source.data + source.ranges.End();
  if (target.data + target.ranges.End() <= begin || end <= target.data + target.ranges.Begin()) return;
  bool equal = target.data == source.data && target.ranges.End() == source.ranges.End();
  instruction.Need(same && equal, "overlap", [&] {
    return std::string("the target and the ") + source.role + " share bytes" + (same ? " without being the same" : "");
  });
}

void Given::End(int64_t bytes) const {
  const Device& device = machine.device;
  double cycles = device.CyclesOf(family, bytes);
  instruction.End(cycles + (device.timed ? device.start : 0), 0, bytes);
}

}  // namespace uir::bang

extern "C" {

void uir_bang_call(const UirBangCall* call, int line) { uir::bang::RunCall(*call, line); }
double uir_bang_value(const UirBangCall* call, int line) {
  if (uir::bang::machine.core && !uir::bang::machine.core->memory_core) uir::bang::NeedValues();
  return uir::bang::RunCall(*call, line);
}

}  // extern "C"
