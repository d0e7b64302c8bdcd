// Every plugin links this file, and no other library does: base/plugins/plugin.h compares the plugin's
// version with the program's.

extern "C" {

/// The version of Megalith that the plugin belongs to.
__attribute__((visibility("default"))) const char* megalith_plugin_version() {
  return MEGALITH_VERSION;
}
}
