// SPDX-License-Identifier: Apache-2.0
// What a run of a modelled device found wrong, and what it counted; both as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace uir::engine {

/*! \brief One fault of the executed text. Numbers are -1 where they do not apply. */
struct Finding {
  std::string kind;    // "out-of-bounds", "race", ...: the tables of the device model list them
  std::string what;    // a sentence
  std::string space;   // "global", "shared", ... or empty
  uint64_t site{0};    // address of the instruction; 0: none
  uint64_t caller{0};  // where its kernel called the function that holds it; 0: it holds it itself
  uint64_t other_site{0};
  int64_t block{-1};
  int64_t thread{-1};
  int64_t other_block{-1};
  int64_t other_thread{-1};
  int64_t count{1};  // how often it was met
  // Of devices whose cores have several pipes: which core of the block, and which pipe of it.
  std::string core;
  std::string pipe;
  std::string other_core;
  std::string other_pipe;
};

/*! \brief Findings of one run: the same kind at the same place is kept once, and counted. */
class Findings {
 public:
  explicit Findings(size_t limit) : limit_(limit) {}

  void Add(Finding finding) {
    auto key = std::make_tuple(finding.kind, finding.site, finding.other_site);
    auto known = index_.find(key);
    if (known != index_.end()) {
      if (known->second < list_.size()) ++list_[known->second].count;
      return;
    }
    index_[key] = list_.size() < limit_ ? list_.size() : limit_;
    if (list_.size() < limit_) list_.push_back(std::move(finding));
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Finding>& list() const { return list_; }

 private:
  size_t limit_;
  std::vector<Finding> list_;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, size_t> index_;
};

/*! \brief A JSON object under construction. */
class JsonObject {
 public:
  JsonObject& Text(const std::string& name, const std::string& value);
  JsonObject& Number(const std::string& name, int64_t value);
  JsonObject& Real(const std::string& name, double value);
  JsonObject& Bool(const std::string& name, bool value);
  /*! \brief A value that is JSON already. */
  JsonObject& Raw(const std::string& name, const std::string& json);
  std::string Done() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

/*! \brief A JSON list of values that are JSON already. */
std::string JsonList(const std::vector<std::string>& values);

}  // namespace uir::engine
