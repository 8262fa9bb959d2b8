// SPDX-License-Identifier: Apache-2.0
// The models of Hugging Face's Python package transformers that are settings of our transformer:
// their arrays, and the config.json beside them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/types.hpp>
#include <tessera/checkpoint/exported_parameter.hpp>

namespace tessera::huggingface {

struct ModelClass;

/// Returns the class that a config.json names. Throws Error (usage) with its path if it is none of
/// ours.
const ModelClass& class_of(const nlohmann::json& theirs, const std::string& path);

/// Returns the class that has the model of a configuration, as config_as_json() returns it, and its
/// config.json. Throws ConfigError with the settings that the nearest class needs if none has it.
const ModelClass& class_for(const nlohmann::json& config, nlohmann::json& theirs);

/// Returns the settings that a model of this config.json needs and the configuration has not, as
/// phrases such as "model.transformer.width = 8, not 64".
std::vector<std::string> differences(const ModelClass& model, const nlohmann::json& theirs,
                                     const nlohmann::json& config);

/// Returns the arrays of a parameter of a model with this config.json. A table of positions has the
/// rows that it says, of which the model may have fewer. Throws Error (usage) if the class has no
/// such parameter.
ExportedParameter exported_parameter(const ModelClass& model, const nlohmann::json& theirs,
                                     const std::string& path, const Shape& shape);

/// Returns the name of an array as the class has it: some files lack "model." or "transformer.", or
/// hold arrays that are no parameters, whose name becomes "".
std::string full_name(const ModelClass& model, const std::string& name);

}  // namespace tessera::huggingface
