/* Takes shared memory and uses it, for ever. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
  for (long megabytes = 0; megabytes < 4096; megabytes++) {
    char *piece = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) { printf("%ld\n", megabytes); return 3; }
    memset(piece, 1, 1 << 20);
  }
  puts("4096");
  return 0;
}
