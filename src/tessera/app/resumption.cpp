// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/resumption.hpp>
#include <tessera/base/error.hpp>
#include <tessera/checkpoint/initial_weights.hpp>
#include <tessera/checkpoint/same_training.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/to_plan_input.hpp>

namespace tessera {

std::string checkpoint_to_resume(const Communicator& world, const Config& config,
                                 const TrainOptions& options) {
  const std::string& weights = config.checkpoint.init_from;
  const std::string path = collectively(world, [&]() -> std::string {
    if (!options.resume && !options.resume_if_present) return "";
    if (options.resume && !options.resume->empty()) return *options.resume;
    const char* const flag = options.resume ? "--resume" : "--resume-if-present";
    if (!config.checkpoint.enabled())
      throw Error(ExitCode::usage, std::string(flag) + ": needs checkpoint.directory");
    if (world.rank() != 0) return "";
    const auto latest = checkpoint_to_continue(config, options.resume.has_value());
    return latest ? latest->string() : "";
  });
  const std::string agreed = broadcast_json(world, path);
  // Rejects a wrong file before anything is printed. fit() reads it again.
  if (!agreed.empty())
    state_to_resume(agreed, world, config);
  else if (!weights.empty())
    check_initial_weights(weights, world, make_model(config.model));
  return agreed;
}

}  // namespace tessera
