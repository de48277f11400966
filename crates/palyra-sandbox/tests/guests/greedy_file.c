/* Makes one file as large as it can. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  static char piece[1 << 20];
  int fd = open("large", O_WRONLY | O_CREAT, 0600);
  while (write(fd, piece, sizeof piece) > 0) {}
  return 3;
}
