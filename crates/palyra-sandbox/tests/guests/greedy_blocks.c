/* Allocates blocks without writing to them, and says how many megabytes it got. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  long megabytes = 0;
  for (int mode = 0; mode < 0x80; mode++) {
    char name[64];
    snprintf(name, sizeof name, "blocks-%d", mode);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    if (mode != 3 && fallocate(fd, mode, 0, 16 << 20) == 0) megabytes += 16;
    close(fd);
  }
  /* Freeing blocks is let through. */
  int fd = open("hole", O_RDWR | O_CREAT, 0600);
  static char block[4096];
  write(fd, block, sizeof block);
  printf("%ld %s\n", megabytes, fallocate(fd, 3, 0, 4096) == 0 ? "freed" : strerror(errno));
  return 0;
}
