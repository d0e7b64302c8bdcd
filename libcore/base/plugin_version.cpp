// Part of every plugin and of no other library: base/plugin.h compares it with the program's version.

extern "C" {

/// The version of Megalith that the plugin belongs to.
__attribute__((visibility("default"))) const char* megalith_plugin_version() {
  return MEGALITH_VERSION;
}
}
