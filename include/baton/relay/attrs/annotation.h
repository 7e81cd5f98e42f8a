// SPDX-License-Identifier: Apache-2.0
// Where Relay's users look for the attributes of on_device and its like; they are declared with their operators.
#pragma once

#include <baton/relay/op/annotation.h>
