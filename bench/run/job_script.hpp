// SPDX-License-Identifier: Apache-2.0
// Job scripts, made from a scheduler's template and the values of a job.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera::bench {

/// A scheduler that has a template.
struct JobScheduler {
  const char* name;
  const char* submit;  ///< the command that submits a script
};
const std::vector<JobScheduler>& schedulers();

/// Quotes `text` as one word of the shell.
std::string shell_word(const std::string& text);

/// Replaces @key@ in the template by the value of each key. `name` is the template's name in
/// messages. Throws ConfigError with the line of an unknown placeholder, and if @run@ is missing.
std::string fill_template(std::string_view text, const std::string& name,
                          const std::map<std::string, std::string>& values);

/// Returns the text of a file of scripts/jobs, which is compiled in so that an installed program
/// has it.
std::string_view job_file(const std::string& name);

}  // namespace tessera::bench
