// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <utility>

namespace tessera::bench {

/// Passes whole lines on to a stream, except for those with this text.
class LineFilter : public std::streambuf {
 public:
  LineFilter(std::ostream& to, std::string left_out) : to_(to), left_out_(std::move(left_out)) {}
  ~LineFilter() override { to_ << line_ << std::flush; }
  LineFilter(const LineFilter&) = delete;
  LineFilter& operator=(const LineFilter&) = delete;

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    line_ += traits_type::to_char_type(c);
    if (line_.back() == '\n') {
      if (line_.find(left_out_) == std::string::npos) to_ << line_ << std::flush;
      line_.clear();
    }
    return c;
  }

 private:
  std::ostream& to_;
  std::string left_out_;
  std::string line_{};
};

}  // namespace tessera::bench
