// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_result.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <sstream>

#include "base/attrs.h"
#include "runtime/error.h"

namespace uir::runtime {

namespace json = ffi::json;

namespace {

/*! \brief Numbers that say where a finding is, of the models that have them; -1 says nothing. */
constexpr const char* kNumbers[] = {"line", "block", "thread"};
/*! \brief Texts that do. */
constexpr const char* kTexts[] = {"core", "pipe"};

std::string TextIn(const json::Object& object, const char* name) { return AttrOr(object, name, std::string()); }

int64_t Number(const json::Object& object, const char* name) { return AttrOr<int64_t>(object, name, -1); }

/*! \brief A line of the source, without its indentation; empty where there is no such line. */
std::string LineOf(const std::string& source, int64_t number) {
  std::istringstream stream(source);
  std::string line;
  for (int64_t n = 0; n < number; ++n) {
    if (!std::getline(stream, line)) return "";
  }
  size_t start = line.find_first_not_of(" \t");
  return number < 1 || start == std::string::npos ? "" : line.substr(start);
}

std::string Place(const json::Object& finding, const std::string& source) {
  std::ostringstream place;
  place << "kernel " << TextIn(finding, "kernel");
  for (const char* name : kNumbers) {
    if (Number(finding, name) >= 0) place << ", " << name << " " << Number(finding, name);
  }
  for (const char* name : kTexts) {
    if (!TextIn(finding, name).empty()) place << ", " << name << " " << TextIn(finding, name);
  }
  std::string line = LineOf(source, Number(finding, "line"));
  if (!line.empty()) place << ": " << line;
  return place.str();
}

[[noreturn]] void Raise(const json::Object& result, const std::string& source) {
  json::Array findings = result.at(ffi::String("findings")).cast<json::Array>();
  json::Object first = findings[0].cast<json::Object>();
  Problem problem;
  problem.what = "The host model of the device found a fault: " + TextIn(first, "what");
  problem.where = Place(first, source);
  if (Number(first, "other_line") >= 0) {
    json::Object other;
    for (const char* name : kNumbers) {
      other.Set(ffi::String(name), Number(first, (std::string("other_") + name).c_str()));
    }
    other.Set(ffi::String("kernel"), ffi::String(TextIn(first, "kernel")));
    for (const char* name : kTexts) {
      other.Set(ffi::String(name), ffi::String(TextIn(first, (std::string("other_") + name).c_str())));
    }
    problem.need = "order with " + Place(other, source);
  }
  if (findings.size() > 1) problem.limit = std::to_string(findings.size()) + " findings in all";
  problem.remedy = "the code generator or the schedule is at fault; keep the source and report it";
  DeviceModelError(problem, std::string(json::Stringify(findings)));
}

}  // namespace

void CheckInterrupted() {
  if (TVMFFIEnvCheckSignals() != 0) throw tvm::ffi::EnvErrorAlreadySet();
}

json::Object ModelResult(int status, const LaunchSpec& launch, const std::string& text, const std::string& source) {
  ffi::String fault;
  ffi::Any value = json::Parse(text, &fault);
  if (!fault.empty()) {
    DeviceError({"The host model's answer cannot be read.", launch.name, "", std::string(fault), ""});
  }
  json::Object result = value.cast<json::Object>();
  if (status == 1) Raise(result, source);
  if (status != 0) {
    DeviceError({"The host model cannot run a kernel.", launch.name, "", TextIn(result, "error"), ""});
  }
  return result;
}

}  // namespace uir::runtime
