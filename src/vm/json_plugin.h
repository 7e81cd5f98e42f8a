// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace baton::vm {

/// Loads the plug-in KEY that comes with Baton (libbaton_plugin_KEY.so beside this library). False where there is none.
bool LoadShippedPlugin(const std::string& key);

}  // namespace baton::vm
