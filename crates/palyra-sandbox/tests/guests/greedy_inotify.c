/* Takes inotify instances until there are no more, and says how many it got. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/inotify.h>

int main(void) {
  int count = 0;
  while (count < 1000 && inotify_init1(0) >= 0) count++;
  printf("%d\n", count);
  return 0;
}
