// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Returns "; did you mean run?" for a command that a program does not have, or "".
std::string hint_for_command(const std::string& word, const std::vector<std::string>& commands);

/// Returns "; did you mean --mesh?" for an option that a command does not have, or "". If the
/// command takes --set, the option may stand for a key. `options`: with their dashes.
std::string hint_for_option(const std::string& option, const std::vector<std::string>& options);

/// Returns the hint for the first command or option that the program does not have, or "".
/// App: CLI::App.
template <class App>
std::string hint_for_arguments(const App& app, const std::vector<std::string>& arguments) {
  const App* command = &app;
  for (const std::string& argument : arguments) {
    if (argument.starts_with("--")) {
      std::vector<std::string> options;
      for (const auto* option : command->get_options())
        for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
      const std::string name = argument.substr(0, argument.find('='));
      bool is_known = name.starts_with("--kokkos-");
      for (const std::string& option : options) is_known |= name == option;
      if (!is_known) return hint_for_option(name, options);
    } else {
      std::vector<std::string> names;
      const App* chosen = nullptr;
      for (const App* other : command->get_subcommands([](const App*) { return true; })) {
        names.push_back(other->get_name());
        if (names.back() == argument) chosen = other;
      }
      if (names.empty()) continue;  // a file or the value of an option
      if (chosen == nullptr) return hint_for_command(argument, names);
      command = chosen;
    }
  }
  return "";
}

}  // namespace tessera
