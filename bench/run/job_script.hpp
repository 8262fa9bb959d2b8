// SPDX-License-Identifier: Apache-2.0
// Job scripts: a scheduler's template with the facts of a job filled in.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera::bench {

/// A scheduler that job scripts can be written for.
struct JobScheduler {
  const char* name;
  const char* submit;  ///< the command that a script is handed to
  std::string_view job_template() const;
};
const std::vector<JobScheduler>& schedulers();

/// The text of scripts/jobs/until_done.sh.
std::string_view until_done_script();

/// `text` as one word of the shell.
std::string shell_word(const std::string& text);

/// The template with @key@ replaced by the value of each key. `name` is the template's, for
/// messages. Throws ConfigError with the line of an unknown placeholder, and if @run@ is missing.
std::string fill_template(std::string_view text, const std::string& name,
                          const std::map<std::string, std::string>& values);

/// The text of a file of scripts/jobs, compiled in: an installed program finds it wherever it is.
std::string_view job_file(const std::string& name);

}  // namespace tessera::bench
