// SPDX-License-Identifier: Apache-2.0
// Loads the weights, reads the inputs, runs the model, writes or checks the outputs, measures.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "device.h"
#include "model.h"

namespace project {
namespace {

constexpr const char* kUsage =
    "usage: model [options] [INPUT.bin ...]\n"
    "  INPUT.bin         one file for each input, in order; without any, those of check/inputs\n"
    "  --size NAME=37    what your inputs have where the model leaves a size open; once for each\n"
    "  --check           compare the outputs with check/outputs (needs the inputs of check/inputs)\n"
    "  --tolerance T     largest difference, relative to the largest expected number; default: by type\n"
    "  --output DIR      write the outputs to DIR/NAME.bin\n"
    "  --repeat N        run N times and say how long a run takes (default 1)\n"
    "  --warmup N        runs before that (default 0)\n"
    "  --device N        number of the device (default 0)\n"
    "  --project DIR     where weights and check are (default: .)\n";

struct Options {
  std::vector<std::string> inputs;
  std::map<std::string, int64_t> sizes;
  std::string output;
  std::string root = ".";
  bool check = false;
  double tolerance = -1.0;
  int repeat = 1;
  int warmup = 0;
  int device = 0;
};

/*! Takes in NAME=37. */
void TakeSize(const std::string& pair, const std::string& where, std::map<std::string, int64_t>* sizes) {
  const size_t sign = pair.find('=');
  const std::string name = pair.substr(0, sign);
  const std::string digits = sign == std::string::npos ? "" : pair.substr(sign + 1);
  const bool whole = !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
  if (name.empty() || !whole || digits.size() > 18) {
    throw Failure(where + " " + pair + ": NAME=37 is needed, a name and a whole number.");
  }
  if (!sizes->emplace(name, std::stoll(digits)).second)
    throw Failure(where + " " + pair + ": " + name + " is given twice.");
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) throw Failure(word + " needs a value.\n" + kUsage);
      return argv[++i];
    };
    const auto number = [&](int least) {
      const std::string text = value();
      char* end = nullptr;
      const long found = std::strtol(text.c_str(), &end, 10);
      if (end == text.c_str() || *end != '\0' || found < least) {
        throw Failure(word + " " + text + ": a whole number of at least " + std::to_string(least) + " is needed.");
      }
      return static_cast<int>(found);
    };
    if (word == "--help" || word == "-h") {
      std::printf("%s", kUsage);
      std::exit(0);
    } else if (word == "--check") {
      options.check = true;
    } else if (word == "--size") {
      TakeSize(value(), word, &options.sizes);
    } else if (word == "--tolerance") {
      options.tolerance = std::atof(value().c_str());
    } else if (word == "--output") {
      options.output = value();
    } else if (word == "--repeat") {
      options.repeat = number(1);
    } else if (word == "--warmup") {
      options.warmup = number(0);
    } else if (word == "--device") {
      options.device = number(0);
    } else if (word == "--project") {
      options.root = value();
    } else if (word.rfind("--", 0) == 0) {
      throw Failure("There is no option " + word + ".\n" + kUsage);
    } else {
      options.inputs.push_back(word);
    }
  }
  if (options.check && !(options.inputs.empty() && options.sizes.empty())) {
    throw Failure("--check compares with what the inputs of check/inputs give: name no others, and no sizes.");
  }
  return options;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/*! The sizes of a run: those of check/inputs, or what the options say of other inputs. */
Sizes SizesOf(const Options& options) {
  const std::vector<std::string>& names = SizeNames();
  std::map<std::string, int64_t> given = options.sizes;
  const bool kept = options.inputs.empty() && (kInputs > 0 || given.empty());
  if (kept && !given.empty()) {
    throw Failure(
        "--size says which sizes your inputs have: name them. Those of check/inputs have sizes of their own.");
  }
  if (kept && !names.empty()) {
    const std::string path = options.root + "/check/sizes.txt";
    std::ifstream file(path);
    if (!file) throw Failure(path + " cannot be read: name your inputs, and their sizes by --size.");
    for (std::string line; std::getline(file, line);) TakeSize(line, path, &given);
  }
  const std::string open = names.empty() ? "every shape is fixed" : "those that it leaves open are " + Joined(names);
  Sizes sizes;
  for (const std::string& name : names) {
    const auto found = given.find(name);
    if (found == given.end()) throw Failure("The size " + name + " is missing (--size " + name + "=37): " + open + ".");
    sizes.push_back(found->second);
    given.erase(found);
  }
  if (!given.empty()) throw Failure("The model has no size " + given.begin()->first + ": " + open + ".");
  return sizes;
}

/*! Where every tensor lies, for as many inputs as the model has. */
Plan PlanOf(const Options& options) {
  Plan plan = PlanFor(SizesOf(options));
  const std::vector<Tensor> inputs = Inputs(plan);
  if (!options.inputs.empty() && options.inputs.size() != inputs.size()) {
    std::vector<std::string> names;
    for (const Tensor& tensor : inputs) names.push_back(tensor.name);
    throw Failure("The model has " + std::to_string(inputs.size()) + " inputs: " + Joined(names));
  }
  return plan;
}

std::vector<char> ReadFile(const std::string& path, size_t bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Failure(path + " cannot be read; --project names the folder of weights and checks.");
  const auto size = static_cast<size_t>(file.tellg());
  if (size != bytes) {
    throw Failure(path + " has " + std::to_string(size) + " bytes, " + std::to_string(bytes) + " are needed.");
  }
  std::vector<char> data(bytes);
  file.seekg(0);
  if (!file.read(data.data(), static_cast<std::streamsize>(bytes))) throw Failure(path + " cannot be read.");
  return data;
}

void WriteFile(const std::string& path, const std::vector<char>& data) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(data.data(), static_cast<std::streamsize>(data.size())).flush()) {
    throw Failure(path + " cannot be written.");
  }
}

template <typename T>
T Load(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

double Half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

double Bfloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

size_t Bytes(Element element) {
  switch (element) {
    case Element::kInt64:
      return 8;
    case Element::kFloat32:
    case Element::kInt32:
      return 4;
    case Element::kFloat16:
    case Element::kBfloat16:
      return 2;
    default:
      return 1;
  }
}

double Number(Element element, const char* data) {
  switch (element) {
    case Element::kFloat32:
      return Load<float>(data);
    case Element::kFloat16:
      return Half(Load<uint16_t>(data));
    case Element::kBfloat16:
      return Bfloat(Load<uint16_t>(data));
    case Element::kInt8:
      return Load<int8_t>(data);
    case Element::kInt32:
      return Load<int32_t>(data);
    case Element::kInt64:
      return static_cast<double>(Load<int64_t>(data));
    default:
      return Load<uint8_t>(data);
  }
}

/*! Sums run in another order on the device; narrow types round every intermediate result. */
double Tolerance(Element element) {
  switch (element) {
    case Element::kFloat32:
      return 1e-4;
    case Element::kFloat16:
      return 1e-2;
    case Element::kBfloat16:
      return 5e-2;
    default:
      return 0.0;
  }
}

/*! Whether an output is what is expected; says so. */
bool Compare(const Tensor& tensor, const std::vector<char>& got, const std::vector<char>& want, double tolerance) {
  const size_t step = Bytes(tensor.element);
  double largest = 0.0;
  double worst = 0.0;
  size_t where = 0;
  for (size_t at = 0; at < want.size(); at += step) {
    const double expected = Number(tensor.element, &want[at]);
    if (std::isfinite(expected)) largest = std::max(largest, std::abs(expected));
    const double found = Number(tensor.element, &got[at]);
    double difference = std::abs(found - expected);
    if (found == expected || (std::isnan(found) && std::isnan(expected))) difference = 0.0;
    if (std::isnan(difference)) difference = HUGE_VAL;
    if (difference > worst) {
      worst = difference;
      where = at / step;
    }
  }
  const double limit = (tolerance < 0.0 ? Tolerance(tensor.element) : tolerance) * std::max(largest, 1e-30);
  const bool fits = worst <= limit;
  std::printf("%-4s %s: largest difference %.3g (element %zu), limit %.3g\n", fits ? "ok" : "BAD", tensor.name.c_str(),
              worst, where, limit);
  return fits;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  const std::string root = options.root + "/";
  const Plan plan = PlanOf(options);
  Device device(options.device);
  const Storage storage(plan);
  Timer timer;
  const Drained drained(device);
  for (const Tensor& tensor : Weights()) {
    CopyToDevice(storage.At(tensor), ReadFile(root + tensor.file, tensor.bytes));
  }
  const std::vector<Tensor> inputs = Inputs(plan);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = inputs[i];
    const std::string path = options.inputs.empty() ? root + "check/inputs/" + tensor.file : options.inputs[i];
    const std::vector<char> data = ReadFile(path, tensor.bytes);
    if (!data.empty()) CopyToDevice(storage.At(tensor), data);
  }

  std::vector<float> times;
  for (int run = 0; run < options.warmup + options.repeat; ++run) {
    timer.Start(device);
    Run(device, storage);
    timer.Stop(device);
    device.Synchronize();
    if (run >= options.warmup) times.push_back(timer.Milliseconds());
  }

  bool good = true;
  for (const Tensor& tensor : Outputs(plan)) {
    std::vector<char> got;
    if (tensor.bytes != 0) got = CopyToHost(storage.At(tensor), tensor.bytes);
    if (!options.output.empty()) WriteFile(options.output + "/" + tensor.file, got);
    if (options.check) {
      const std::vector<char> want = ReadFile(root + "check/outputs/" + tensor.file, tensor.bytes);
      good = Compare(tensor, got, want, options.tolerance) && good;
    }
  }
  std::sort(times.begin(), times.end());
  std::printf("%d runs: median %.4f ms, least %.4f ms\n", options.repeat, times[times.size() / 2], times.front());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace project

int main(int argc, char** argv) {
  try {
    return project::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
