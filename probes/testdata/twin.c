// A second source file, with a static function that has the name of one of names.c.
static __attribute__((used)) int twin(void) { return 1; }
