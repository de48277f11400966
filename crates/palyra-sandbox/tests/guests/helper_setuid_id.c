/* Not a guest: tells by its exit code whether the set-user-id bit gave it other rights. */
#include <unistd.h>

int main(void) { return geteuid() == 0 || geteuid() != getuid() ? 0 : 1; }
