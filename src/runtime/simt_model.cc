// SPDX-License-Identifier: Apache-2.0
#include "runtime/simt_model.h"

#include <tvm/ffi/extra/json.h>

#include <memory>
#include <sstream>

#include "device/simt/simt.h"
#include "runtime/error.h"

namespace uir::runtime::simt {

namespace json = ffi::json;

namespace {

std::string Text(const json::Object& object, const char* name) {
  auto it = object.find(ffi::String(name));
  return it == object.end() ? "" : std::string((*it).second.cast<ffi::String>());
}

int64_t Number(const json::Object& object, const char* name) {
  auto it = object.find(ffi::String(name));
  return it == object.end() ? -1 : (*it).second.cast<int64_t>();
}

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
  place << "kernel " << Text(finding, "kernel");
  for (const char* name : {"line", "block", "thread"}) {
    if (Number(finding, name) >= 0) place << ", " << name << " " << Number(finding, name);
  }
  std::string line = LineOf(source, Number(finding, "line"));
  if (!line.empty()) place << ": " << line;
  return place.str();
}

[[noreturn]] void Raise(const json::Object& result, const std::string& source) {
  json::Array findings = result.at(ffi::String("findings")).cast<json::Array>();
  json::Object first = findings[0].cast<json::Object>();
  Problem problem;
  problem.what = "The host model of the device found a fault: " + Text(first, "what");
  problem.where = Place(first, source);
  if (Number(first, "other_line") >= 0) {
    json::Object other;
    for (const char* name : {"line", "block", "thread"}) {
      other.Set(ffi::String(name), Number(first, (std::string("other_") + name).c_str()));
    }
    other.Set(ffi::String("kernel"), ffi::String(Text(first, "kernel")));
    problem.need = "order with " + Place(other, source);
  }
  if (findings.size() > 1) problem.limit = std::to_string(findings.size()) + " findings in all";
  problem.remedy = "the code generator or the schedule is at fault; keep the source and report it";
  DeviceModelError(problem, std::string(json::Stringify(findings)));
}

void Finish(int status, const LaunchSpec& launch, const std::string& text, const std::string& source) {
  if (status == 0) return;
  ffi::String fault;
  ffi::Any value = json::Parse(text, &fault);
  if (!fault.empty()) {
    DeviceError({"The host model's answer cannot be read.", launch.name, "", std::string(fault), ""});
  }
  json::Object result = value.cast<json::Object>();
  if (status == 1) Raise(result, source);
  DeviceError({"The host model cannot run a kernel.", launch.name, "", Text(result, "error"), ""});
}

void Run(const KernelSpec& spec, const LaunchSpec& launch, const std::string& library, const std::string& source,
         const std::vector<void*>& pointers) {
  std::vector<UirSimtArg> arguments;
  for (int position : launch.arguments) {
    size_t k = static_cast<size_t>(position), count = spec.params.size();
    const std::string& name = k < count ? spec.params[k].name : spec.workspace[k - count].name;
    int64_t bytes = k < count ? spec.params[k].bytes : spec.workspace[k - count].bytes;
    arguments.push_back({pointers[k], bytes, name.c_str()});
  }
  UirSimtLaunch request{};
  request.library = library.c_str();
  request.kernel = launch.name.c_str();
  request.args = arguments.data();
  request.num_args = static_cast<int32_t>(arguments.size());
  request.grid = static_cast<int32_t>(launch.grid);
  request.block = static_cast<int32_t>(launch.block);
  request.shared_bytes = launch.shared_bytes;
  request.cooperative = launch.cooperative;
  char* text = nullptr;
  int status = uir_simt_launch(&request, &text);
  std::unique_ptr<char, decltype(&uir_simt_free_text)> owned(text, uir_simt_free_text);
  Finish(status, launch, text ? text : "{}", source);
}

}  // namespace

void Launch(const KernelSpec& spec, const std::string& library, const std::string& source,
            const std::vector<void*>& pointers) {
  for (const LaunchSpec& launch : spec.launches) Run(spec, launch, library, source, pointers);
}

}  // namespace uir::runtime::simt
